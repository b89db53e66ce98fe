"""Implements `python -m lifecycle.promote`: deploys to all deployments of a stage what the stage before has proven."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import boto3

from cli.client import deployments_file, everywhere
from cli.client.deployments_file import ListedDeployment
from cli.shared import aws, times
from cli.shared.errors import CliError, Exit
from infra import release
from infra.settings_record import record_in
from lifecycle.changes import say_differences
from lifecycle.console import run, say
from lifecycle.deploy import deploy
from lifecycle.promotion import HISTORY, Evidence, changed_code, objections, read_evidence, release_in
from lifecycle.resources import resources_of, template_of

NONE = "none"
"""In the place of the stage before: there is none."""

MOST_DAYS = 20
"""Business days of four weeks."""


def promote(args: argparse.Namespace) -> None:
    """Deploys to one deployment after the other; ends at the first that fails.

    Raises:
        CliError: what stands against it, or which deployments have the release and which do not.
    """
    if args.before is None:
        raise CliError(Exit.USAGE, f"FROM is missing: the stage before, or FROM={NONE} for the first stage")
    if not 0 <= args.days <= MOST_DAYS:
        why = f"CloudWatch keeps the history of alarms for {HISTORY.days} days"
        raise CliError(Exit.USAGE, f"DAYS is {args.days}: must be between 0 and {MOST_DAYS}, because {why}")
    listed = deployments_file.read(Path(args.deployments))
    before = [] if args.before == NONE else _chosen(listed, args.before, args.deployments)
    targets = _chosen(listed, args.to, args.deployments)
    if both := [one.label for one in targets if one in before]:
        raise CliError(Exit.USAGE, f"{', '.join(both)} would follow on itself: choose another stage")
    if release.commit() is None:
        changed = release.changes()
        todo = f"commit or remove what differs:\n{changed}" if changed else f"set {release.COMMIT} outside a checkout"
        raise CliError(Exit.FAILED, f"a release needs a commit: {todo}")
    for index, target in enumerate(targets):
        say(f"\n== {target.label} ({index + 1} of {len(targets)})")
        try:
            _promote(args, target, before)
        except CliError as error:
            done, left = ([one.label for one in part] for part in (targets[:index], targets[index:]))
            so_far = f". Deployed: {', '.join(done)}; not: {', '.join(left)}" if done and not args.check else ""
            raise CliError(error.code, f"{target.label}: {error}{so_far}") from error.__cause__


def _chosen(listed: Sequence[ListedDeployment], word: str, file: str) -> list[ListedDeployment]:
    """Returns the deployments of a stage, or the one with a label."""
    if chosen := [one for one in listed if word in (one.stage, one.label)]:
        return chosen
    raise CliError(Exit.USAGE, f"{file} has no deployment of the stage {word}, and none with this label")


def _session(one: ListedDeployment) -> boto3.Session:
    return aws.make_session(one.profile, one.region, one.role, one.external_id)


def _evidence(one: ListedDeployment, days: int) -> Evidence:
    say(f"Reading {one.label} ...")
    try:
        health = everywhere.connect(one).client.health()
        return read_evidence(_session(one), one.name, one.label, health, days, times.now())
    except CliError as error:
        raise CliError(error.code, f"{one.label}: {error}") from error.__cause__


def _promote(args: argparse.Namespace, target: ListedDeployment, before: Sequence[ListedDeployment]) -> None:
    def vet(template: Mapping[str, Any]) -> None:
        """Reads what the stage before shows now: hours can have passed since the first deployment."""
        evidence = [_evidence(one, args.days) for one in before]
        new, settings = release_in(template), record_in(template)
        against = [f"{one.label}: {why}" for one in evidence for why in objections(one, new, args.days, times.now())]
        if against:
            raise CliError(Exit.FAILED, "not deployed, because of\n  " + "\n  ".join(against))
        for one in evidence:
            if one.settings and settings:
                say_differences(one.label, one.settings, settings)
        if not evidence:
            say(f"FROM={NONE}: no deployment has proven this release.")

    options = argparse.Namespace(
        deployment=target.name,
        stage=target.stage,
        context=[],
        adopt="ask",
        repair=False,
        unleashed=False,
        **{name: getattr(args, name) for name in ("yes", "keep", "reset")},
    )
    session = _session(target)
    deploy(options, session, vet, check=args.check)
    if not args.check:
        _verify(session, target)


def _verify(session: boto3.Session, target: ListedDeployment) -> None:
    """Compares the code that Lambda has with the release of the deployed template."""
    deployed = release_in(template_of(session, target.name))
    differing = list(changed_code(session, resources_of(session, target.name), deployed)) if deployed else []
    if differing:
        which = ", ".join(differing)
        raise CliError(Exit.FAILED, f"it does not run the release: {which} have other code: deploy again")
    say(f"{target.label} runs the release, by the hashes that Lambda reports.")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="make promote", description="Deploys to a stage what the stage before has run for some business days."
    )
    parser.add_argument("--from", dest="before", metavar="STAGE", help=f"the stage before; {NONE} for the first stage")
    parser.add_argument("--to", required=True, metavar="STAGE", help="the stage, or the label of one deployment")
    parser.add_argument("--days", type=int, default=3, help=f"business days, up to {MOST_DAYS} (default: 3)")
    parser.add_argument("--deployments", default=str(deployments_file.DEFAULT), metavar="FILE")
    parser.add_argument("--check", action="store_true", help="check all, show the settings, and deploy nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    values = parser.add_mutually_exclusive_group()
    values.add_argument("--keep", action="store_true", help="keep settings that earlier commands gave")
    values.add_argument("--reset", action="store_true", help="accept that they return to the values of cdk.json")
    args = parser.parse_args()
    return run(lambda: promote(args))


if __name__ == "__main__":
    sys.exit(main())
