"""Which retained tables a deployment takes over, said before anybody says yes to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import boto3

from cli.errors import CliError, Exit
from infra.settings import DeploymentSettings
from lifecycle import retained
from lifecycle.console import say
from lifecycle.leftovers import KINDS, remains, removed_by
from lifecycle.resources import Resource, template_of

_DATA = {kind: KINDS[kind] for kind in ("AWS::DynamoDB::Table", "AWS::S3::Bucket")}
SWITCH = "State"
"""What the table with the switch holds."""


def to_adopt(
    session: boto3.Session,
    settings: DeploymentSettings,
    template: Mapping[str, Any],
    there: Mapping[str, Resource],
    how: str,
    *,
    new: bool,
) -> dict[str, retained.RetainedTable]:
    """Retained tables by logical id; empty when there are none, or none are wanted.

    Args:
        there: what the stack has, by logical id. Of a new deployment these are tables that an earlier try took over.
        how: the option ADOPT: ``ask``, ``newest``, ``none``, or names of tables, parted by commas.
        new: nothing has been deployed yet.

    Raises:
        CliError: where it is not clear which are meant, or they cannot be taken.
    """
    parts_by_id = retained.parts(template)
    if new and (taken := {part: there[key].physical_id for key, part in parts_by_id.items() if key in there}):
        _refuse_to_throw_away(settings, "remove the stack first, with make destroy, which leaves them")
        _say_taken(taken)
    missing = {part for key, part in parts_by_id.items() if key not in there}
    by_name = how not in ("ask", "newest", "none")
    if how == "none" or not (missing or by_name):
        return {}
    held = {resource.physical_id for resource in there.values()}
    every = retained.find_retained(session, settings.chaos.deployment)
    free = [table for table in every if table.name not in held]
    if by_name:
        # A try before may have taken some of them over.
        names = [name for part in how.split(",") if (name := part.strip()) and name not in held]
        meant = retained.named(free, names)
    else:
        # Whether a stack has written anything its other tables say, too, though this one may hold them by now.
        used = retained.used([table for table in every if table.is_of(settings.chaos.deployment)])
        meant = _left_by_us(free, used, settings.chaos.deployment, str(session.region_name))
    if by_name and (has := sorted({table.part for table in meant} - missing)):
        raise CliError(
            Exit.USAGE,
            f"the deployment has tables of its own for {', '.join(has)}: remove it first, with make destroy, "
            "which keeps them, and name the tables again",
        )
    candidates = [table for table in meant if table.part in missing]
    if not candidates:
        return {}
    _refuse_to_throw_away(settings, "start with empty tables with ADOPT=none")
    tables = retained.imports(template, retained.choose(candidates, newest=how == "newest"))
    retained.refuse_shared(session, tables.values())
    say("An earlier deployment of this name has left these tables, which this one takes over (not with ADOPT=none):")
    for table in tables.values():
        say(f"  {table.part}: {table.name}, made {table.created:%Y-%m-%d %H:%M}")
    if new:
        say("The salt is a new one: rolls of earlier days are checked with the earlier secret.")
    return tables


def _left_by_us(
    free: Sequence[retained.RetainedTable], used: Sequence[retained.RetainedTable], name: str, region: str
) -> list[retained.RetainedTable]:
    """The tables that stacks of this name have made and used. Whoever may tag a table can make it look like the
    deployment's, with a switch that is unleashed: such a table is taken over only if a person names it.
    """
    _say_foreign([table for table in free if not table.is_of(name)], name)
    _say_unused([table for table in free if table.is_of(name) and table not in used], region)
    return [table for table in free if table in used]


def _say_foreign(tables: Sequence[retained.RetainedTable], name: str) -> None:
    if not tables:
        return
    say(f"These tables have the tags of this deployment, but CloudFormation did not make them for a stack {name}.")
    say("They are not taken over. If you have made them yourself, such as from a backup, and trust what is in them:")
    say(f"  ADOPT={','.join(table.name for table in tables)}")


def say_left(session: boto3.Session, name: str, template: Mapping[str, Any], there: Mapping[str, Resource]) -> None:
    """What a deployment takes out of its stack that people and Troop have recorded, such as benchmarks do."""
    out = {key: resource.physical_id for key, resource in there.items() if key not in template["Resources"]}
    if not any(there[key].kind in _DATA for key in out):
        return
    deployed = template_of(session, name)
    staying = {r.physical_id: r for r in remains(deployed, out, str(session.region_name)) if r.kind in _DATA.values()}
    going = [i for key, i in out.items() if there[key].kind in _DATA and i not in staying]
    if going:
        say(f"These are no part of this deployment any more, and go with what is in them: {', '.join(going)}")
    if not staying:
        return
    say("Nothing in this deployment refers to these any more. They stay, cost what storage costs, and cannot be shown:")
    for remain in staying.values():
        say(f"  {remain.kind} {remain.physical_id}")
    say("A later deployment that has their part again takes the tables over.")


def _refuse_to_throw_away(settings: DeploymentSettings, or_else: str) -> None:
    if not settings.retain_data:
        raise CliError(
            Exit.USAGE,
            f"an earlier deployment {settings.chaos.deployment} has left tables, and this one "
            f"(troop:retain_data=false) would delete them when it goes: keep the data, or {or_else}",
        )


def _say_taken(tables: Mapping[str, str]) -> None:
    say("An earlier try, which did not come to its end, has taken these tables over, and they are kept:")
    for part, table in tables.items():
        say(f"  {part}: {table}")


def _say_unused(tables: Sequence[retained.RetainedTable], region: str) -> None:
    if not tables:
        return
    say("A deployment of this name that never recorded anything has left empty tables, which are not taken over.")
    say("To remove them:")
    for table in tables:
        for command in removed_by(retained.TABLE, table.name, {"DeletionProtectionEnabled": table.protected}, region):
            say(f"  {command}")


def switch_table(
    template: Mapping[str, Any], there: Mapping[str, Resource], tables: Mapping[str, retained.RetainedTable]
) -> str | None:
    """The table with the switch that a deployment starts with; None where it starts with an empty one.

    Args:
        there: what its stack has, by logical id.
        tables: those that it takes over, by logical id.
    """
    for logical_id, part in retained.parts(template).items():
        if part == SWITCH:
            if logical_id in tables:
                return tables[logical_id].name
            return there[logical_id].physical_id if logical_id in there else None
    return None
