"""Implements `python -m lifecycle.deploy`: shows the target, asks, and runs `cdk deploy`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import boto3

from cli.client.deployment import find_stack
from cli.shared import aws
from cli.shared.errors import CliError, Exit
from infra.settings import PREFIX, ZONES_CHOSEN, DeploymentSettings
from infra.settings_record import record_in
from lifecycle import retained, takeover
from lifecycle.account import warn_of_account
from lifecycle.adoption import SWITCH, say_left, switch_table, to_adopt
from lifecycle.bootstrap import bootstrap_missing
from lifecycle.changes import confirm_changes, with_deployed
from lifecycle.console import ask, run, say
from lifecycle.data_key import refuse_other_key, refuse_unusable_key
from lifecycle.open_runs import refuse_while_open
from lifecycle.project import cdk, chosen, settings_with
from lifecycle.quota import refuse_beyond_quota, warn_of_concurrency
from lifecycle.removed_functions import refuse_while_called
from lifecycle.resources import Resource, resources_of, template_of
from lifecycle.zones import choose_zones, zones_available, zones_there

_BUNDLE = f"{PREFIX}bundle"
_ZONES = f"{PREFIX}zones"
_FUNCTION = "AWS::Lambda::Function"


Vet = Callable[[Mapping[str, Any]], None]
"""Refuses a template that must not be deployed, by a CliError."""


def deploy(
    args: argparse.Namespace, session: boto3.Session | None = None, vet: Vet | None = None, *, check: bool = False
) -> None:
    """Deploys, with all checks before the confirmation.

    Args:
        session: the account and region; by default those of the environment.
        vet: a further check.
        check: whether to end before the confirmation.
    """
    with tempfile.TemporaryDirectory(prefix="troop-") as assembly:
        _deploy(args, Path(assembly), session or aws.make_session(None, None), vet, check=check)


def _deploy(args: argparse.Namespace, assembly: Path, session: boto3.Session, vet: Vet | None, *, check: bool) -> None:
    in_command = [*args.context, *chosen(args.stage, args.deployment)]
    overrides = [*in_command, *_for_here(args.context)]
    settings = settings_with(overrides, args.deployment)
    _refuse_layers_of_elsewhere(settings)
    name = settings.chaos.deployment
    with aws.translated_errors():
        caller = aws.client(session, "sts").get_caller_identity()
    stack = find_stack(session, name)
    there = resources_of(session, name) if stack else {}
    if stack:
        _refuse_stack(name, stack["StackStatus"], empty=not there)
    # By its resources, not its state: a stack with nothing but tables that it took over was never deployed.
    new = not any(resource.kind == _FUNCTION for resource in there.values())
    say(f"Deployment {name}, account {caller['Account']}, region {session.region_name}, as {caller['Arn']}")
    if args.repair:
        _refuse_repair(name, new=new)
    say("New deployment." if new else "The deployment exists: this updates it.")
    if args.repair:
        say("This also restores resources that were changed manually, as far as CloudFormation detects the changes.")
    before = template_of(session, name) if there else {}
    deployed = None if new else record_in(before)
    if args.keep and not new:
        in_command = with_deployed(name, deployed, in_command)
        overrides = [*in_command, *_for_here(args.context)]
        settings = settings_with(overrides, name)
    if not settings.chaos.benchmarks and stack:
        refuse_while_open(session, stack)
    if zones := _zones(session, settings, caller["Account"], there):
        chosen_here = [] if "zones" in settings.overrides else [f"{PREFIX}{ZONES_CHOSEN}=true"]
        others = (one for one in overrides if not one.startswith(f"{_ZONES}="))
        overrides = [*others, f"{_ZONES}={','.join(zones)}", *chosen_here]
    warn_of_concurrency(session, settings.chaos)
    refuse_unusable_key(session, settings)
    warn_of_account(session, settings.chaos, new=new)
    template = _synthesise(session, name, overrides, assembly)
    if vet:
        vet(template)
    refuse_while_called(session, there, template)
    adoption = to_adopt(session, settings, template, there, args.adopt, new=new)
    tables = adoption.tables
    refuse_other_key(session, settings, tables)
    say_left(before, template, there, str(session.region_name))
    starts = new or any(table.part == SWITCH for table in tables.values())
    unleashed = starts and _say_switch(session, settings, switch_table(template, there, tables))
    if unleashed and args.yes and not args.unleashed:
        raise CliError(
            Exit.NOT_CONFIRMED,
            "the switch in a retained table is unleashed: the deployment would terminate instances from its first tick "
            "on. YES=1 does not confirm that: add UNLEASHED=1, or start with empty tables with ADOPT=none",
        )
    if not new:
        confirm_changes(name, deployed, record_in(template), in_command, reset=args.reset, yes=args.yes or check)
    if check:
        say("Nothing was changed: this was a check.")
        return
    bootstrap = bootstrap_missing(session, caller["Account"], assembly, name)
    if bootstrap:
        say("This account and region are not bootstrapped for the CDK (a bucket and roles). This command runs first:")
        say(f"  cdk bootstrap aws://{caller['Account']}/{session.region_name}")
    into = f"{name}{', UNLEASHED,' if unleashed else ''} into account {caller['Account']}, region {session.region_name}"
    ask(f"Deploy {into}", args.yes, "YES=1")
    if bootstrap:
        cdk(session, "bootstrap", f"aws://{caller['Account']}/{session.region_name}", "--app", "")
    retained.decline(session, adoption.declined)
    if stack and not there and (tables or stack["StackStatus"].startswith("IMPORT_ROLLBACK")):
        takeover.clear_away(session, stack["StackId"])
    if tables:
        say("Taking over the retained tables ...")
        retained.accept(session, tables.values())
        if there:
            takeover.adopt_into(session, name, assembly, template, tables)
        else:
            takeover.adopt(session, name, template, tables)
    approval = "never" if args.yes else "broadening"
    repair = ["--revert-drift"] if args.repair else []
    cdk(session, "deploy", name, "--app", str(assembly), "--require-approval", approval, *repair)
    option = "" if name == "Troop" else f" --deployment {name}"
    say(f"\nNext: troop{option} doctor; troop{option} groups; then, to let chaos terminate: troop{option} unleash")


def _refuse_repair(name: str, *, new: bool) -> None:
    """Refuses REPAIR where CloudFormation cannot compare the resources with the template.

    Raises:
        CliError: USAGE, with what to do instead.
    """
    if aws.is_local():
        raise CliError(
            Exit.USAGE,
            "local AWS cannot detect manual changes: deploy without REPAIR, or restart it",
        )
    if new:
        raise CliError(Exit.USAGE, f"there is no deployment {name} to repair: deploy without REPAIR")


def _for_here(overrides: Sequence[str]) -> list[str]:
    """Returns the settings for local AWS as ``KEY=VALUE``: its functions are processes, with this machine's wheels."""
    if not aws.is_local() or any(override.startswith(f"{_BUNDLE}=") for override in overrides):
        return []
    return [f"{_BUNDLE}=machine"]


def _refuse_layers_of_elsewhere(settings: DeploymentSettings) -> None:
    bundle, whose = ("machine", "local AWS") if aws.is_local() else ("lambda", "AWS")
    if settings.bundle != bundle:
        raise CliError(
            Exit.USAGE,
            f"{_BUNDLE} is {settings.bundle}: must be {bundle}, or functions in {whose} cannot import their packages",
        )


def _zones(
    session: boto3.Session, settings: DeploymentSettings, account: str, there: Mapping[str, Resource]
) -> tuple[str, ...]:
    """Returns the zones of the subnets in the deployment's own network; empty without such a network.

    Args:
        there: the stack's resources by logical id.

    Raises:
        CliError: the network cannot be created, or cannot stay as it is.
    """
    if settings.network or not settings.chaos.benchmarks:
        return ()
    if not aws.is_local() and not any(resource.kind == "AWS::EC2::VPC" for resource in there.values()):
        refuse_beyond_quota(session, account)
    setting = settings.zones
    zones = choose_zones(setting, zones_there(session, there), zones_available(session), str(session.region_name))
    say(f"Its network has a subnet in each of these zones: {', '.join(zones)}.")
    if isinstance(setting, int) and len(zones) < setting:
        say(
            f"{_ZONES} is {setting}, but {session.region_name} has only {len(zones)} zones for this account, so fleets "
            f"use these. To avoid this message, set -c {_ZONES}={len(zones)}, here or in cdk.json."
        )
    return zones


def _refuse_stack(name: str, status: str, *, empty: bool) -> None:
    """Refuses a stack in a state that allows no deployment.

    Args:
        empty: whether the stack has no resources.
    """
    if status.endswith("_IN_PROGRESS") and status != "REVIEW_IN_PROGRESS":
        raise CliError(Exit.FAILED, f"the stack {name} is {status}: wait until the operation has ended")
    if status in ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "DELETE_FAILED") or (
        status == "IMPORT_ROLLBACK_FAILED" and not empty
    ):
        raise CliError(
            Exit.FAILED, f"the stack {name} is {status} and can only be removed: make destroy DEPLOYMENT={name}"
        )


def _synthesise(session: boto3.Session, name: str, overrides: list[str], assembly: Path) -> dict[str, Any]:
    context = [part for override in overrides for part in ("-c", override)]
    cdk(session, "synth", name, "--quiet", "--output", str(assembly), *context, quiet=True)
    template: dict[str, Any] = json.loads((assembly / f"{name}.template.json").read_text(encoding="utf-8"))
    return template


def _say_switch(session: boto3.Session, settings: DeploymentSettings, table: str | None) -> bool:
    """Prints, before the confirmation, whether the deployment starts leashed.

    Args:
        table: the retained table with the switch; None without one.

    Returns:
        Whether the table, and no setting, makes the deployment start unleashed: the people who deploy cannot see that
        in the settings.
    """
    leashed, whence, by_table = settings.chaos.leashed, "troop:leashed", False
    if table:
        with aws.translated_errors():
            answer = aws.client(session, "dynamodb").get_item(TableName=table, Key={"key": {"S": "switch"}})
        if "leashed" in (item := answer.get("Item", {})):
            leashed, whence = bool(item["leashed"].get("BOOL")), "the switch in the retained table"
            by_table = True
    say(
        f"It starts leashed ({whence}): it decides and records, but terminates nothing."
        if leashed
        else f"It starts UNLEASHED ({whence}): it terminates instances from its first tick on."
    )
    return by_table and not leashed


def main() -> int:
    parser = argparse.ArgumentParser(prog="make deploy", description="Deploys into the account of the AWS credentials.")
    parser.add_argument("--deployment", help="the deployment's name; by default that of the settings")
    parser.add_argument("--stage", help="a stage of the settings")
    parser.add_argument("--yes", action="store_true", help="do not ask, not even about wider permissions")
    parser.add_argument(
        "--adopt",
        metavar="newest|none|TABLE,...",
        default="ask",
        help="retained tables to take over: the newest of each part, the named ones, or none; the others are declined",
    )
    parser.add_argument("--unleashed", action="store_true", help="with --yes: accept an unleashed retained switch")
    parser.add_argument("--repair", action="store_true", help="restore resources that were changed manually")
    values = parser.add_mutually_exclusive_group()
    values.add_argument("--keep", action="store_true", help="keep settings that earlier commands gave")
    values.add_argument("--reset", action="store_true", help="accept that they return to the values of cdk.json")
    parser.add_argument("-c", dest="context", metavar="KEY=VALUE", action="append", default=[], help="a setting")
    args = parser.parse_args()
    return run(lambda: deploy(args))


if __name__ == "__main__":
    sys.exit(main())
