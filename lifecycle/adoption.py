"""Chooses the retained tables that a deployment takes over, and prints them before the confirmation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import boto3

from cli.shared.errors import CliError, Exit
from infra.settings import DeploymentSettings
from lifecycle import retained
from lifecycle.console import say
from lifecycle.leftovers import KINDS, remains, removed_by
from lifecycle.resources import Resource, template_of

_DATA = {kind: KINDS[kind] for kind in ("AWS::DynamoDB::Table", "AWS::S3::Bucket")}
SWITCH = "State"
"""The part of the table that holds the switch."""


def to_adopt(
    session: boto3.Session,
    settings: DeploymentSettings,
    template: Mapping[str, Any],
    there: Mapping[str, Resource],
    how: str,
    *,
    new: bool,
) -> dict[str, retained.RetainedTable]:
    """Returns the retained tables to take over, by logical id.

    Args:
        there: the stack's resources by logical id; for a new deployment, tables that an earlier attempt took over.
        how: the option ADOPT: ``ask``, ``newest``, ``none``, or names of tables, separated by commas.
        new: whether nothing has been deployed yet.

    Raises:
        CliError: the choice is ambiguous, or a table cannot be taken over.
    """
    parts_by_id = retained.parts(template)
    if new and (taken := {part: there[key].physical_id for key, part in parts_by_id.items() if key in there}):
        _refuse_to_throw_away(settings, "first remove the stack with make destroy, which keeps them")
        _say_taken(taken)
    missing = {part for key, part in parts_by_id.items() if key not in there}
    by_name = how not in ("ask", "newest", "none")
    if how == "none" or not (missing or by_name):
        return {}
    held = {resource.physical_id for resource in there.values()}
    every = retained.find_retained(session, settings.chaos.deployment)
    free = [table for table in every if table.name not in held]
    if by_name:
        # An earlier attempt may have taken over some of them.
        names = [name for part in how.split(",") if (name := part.strip()) and name not in held]
        meant = retained.named(free, names)
    else:
        # A stack counts as used if any of its tables has items, including those that this stack has already taken over.
        used = retained.used([table for table in every if table.is_of(settings.chaos.deployment)])
        meant = _left_by_us(free, used, settings.chaos.deployment, str(session.region_name))
    if by_name and (has := sorted({table.part for table in meant} - missing)):
        raise CliError(
            Exit.USAGE,
            f"the deployment already has tables for {', '.join(has)}: first remove it with make destroy, which keeps "
            "them, and name the tables again",
        )
    candidates = [table for table in meant if table.part in missing]
    if not candidates:
        return {}
    _refuse_to_throw_away(settings, "start with empty tables with ADOPT=none")
    tables = retained.imports(template, retained.choose(candidates, newest=how == "newest"))
    retained.refuse_shared(session, tables.values())
    say("This deployment takes over these tables of an earlier one of this name (not with ADOPT=none):")
    for table in tables.values():
        say(f"  {table.part}: {table.name}, created {table.created:%Y-%m-%d %H:%M}")
    if new:
        say("The salt is new. To check rolls of earlier days, use the earlier secret.")
    return tables


def _left_by_us(
    free: Sequence[retained.RetainedTable], used: Sequence[retained.RetainedTable], name: str, region: str
) -> list[retained.RetainedTable]:
    """Returns the tables that stacks of this name created and used; prints the others.

    Anyone who may tag a table can make it look like the deployment's, with an unleashed switch. Such a table is taken
    over only if a person names it.
    """
    _say_foreign([table for table in free if not table.is_of(name)], name)
    _say_unused([table for table in free if table.is_of(name) and table not in used], region)
    return [table for table in free if table in used]


def _say_foreign(tables: Sequence[retained.RetainedTable], name: str) -> None:
    if not tables:
        return
    say(f"These tables have the tags of this deployment, but CloudFormation did not create them for a stack {name}.")
    say("They are not taken over. If you created them, for example from a backup, and trust their contents, use:")
    say(f"  ADOPT={','.join(table.name for table in tables)}")


def say_left(session: boto3.Session, name: str, template: Mapping[str, Any], there: Mapping[str, Resource]) -> None:
    """Prints the tables and buckets that leave the stack with this deployment, and which of them stay."""
    out = {key: resource.physical_id for key, resource in there.items() if key not in template["Resources"]}
    if not any(there[key].kind in _DATA for key in out):
        return
    deployed = template_of(session, name)
    staying = {r.physical_id: r for r in remains(deployed, out, str(session.region_name)) if r.kind in _DATA.values()}
    going = [i for key, i in out.items() if there[key].kind in _DATA and i not in staying]
    if going:
        say(f"No longer part of this deployment, and deleted with their contents: {', '.join(going)}")
    if not staying:
        return
    say("No longer part of this deployment, but retained at the cost of their storage; Troop cannot show them:")
    for remain in staying.values():
        say(f"  {remain.kind} {remain.physical_id}")
    say("A later deployment that includes them again takes over the tables.")


def _refuse_to_throw_away(settings: DeploymentSettings, or_else: str) -> None:
    if not settings.retain_data:
        raise CliError(
            Exit.USAGE,
            f"an earlier deployment {settings.chaos.deployment} left tables, and make destroy of this one would delete "
            f"them (troop:retain_data=false): set it to true, or {or_else}",
        )


def _say_taken(tables: Mapping[str, str]) -> None:
    say("An earlier attempt, which did not finish, took over these tables. They are kept:")
    for part, table in tables.items():
        say(f"  {part}: {table}")


def _say_unused(tables: Sequence[retained.RetainedTable], region: str) -> None:
    if not tables:
        return
    say("A deployment of this name that recorded nothing left empty tables. They are not taken over.")
    say("To remove them, run:")
    for table in tables:
        for command in removed_by(retained.TABLE, table.name, {"DeletionProtectionEnabled": table.protected}, region):
            say(f"  {command}")


def switch_table(
    template: Mapping[str, Any], there: Mapping[str, Resource], tables: Mapping[str, retained.RetainedTable]
) -> str | None:
    """Returns the table with the switch that a deployment starts with; None if it starts with an empty one.

    Args:
        there: the resources of its stack, by logical id.
        tables: the tables that it takes over, by logical id.
    """
    for logical_id, part in retained.parts(template).items():
        if part == SWITCH:
            if logical_id in tables:
                return tables[logical_id].name
            return there[logical_id].physical_id if logical_id in there else None
    return None
