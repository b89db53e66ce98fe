"""Chooses the retained tables that a deployment takes over, and prints them before the confirmation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import boto3

from cli.shared.errors import CliError, Exit
from infra.settings import DeploymentSettings
from lifecycle import retained
from lifecycle.console import say
from lifecycle.leftovers import KINDS, leftovers, removed_by
from lifecycle.origin import proven
from lifecycle.resources import Resource

_DATA = {kind: KINDS[kind] for kind in ("AWS::DynamoDB::Table", "AWS::S3::Bucket")}
SWITCH = "State"
"""The part of the table that holds the switch."""


@dataclass(frozen=True)
class Adoption:
    """What happens to the tables of earlier deployments.

    Attributes:
        tables: those that the deployment takes over, by logical id.
        declined: those that no deployment uses any more.
    """

    tables: Mapping[str, retained.RetainedTable] = field(default_factory=dict)
    declined: Sequence[retained.RetainedTable] = ()


def to_adopt(
    session: boto3.Session,
    settings: DeploymentSettings,
    template: Mapping[str, Any],
    there: Mapping[str, Resource],
    how: str,
    *,
    new: bool,
) -> Adoption:
    """Decides about the tables of earlier deployments, and prints the decision.

    Args:
        there: the stack's resources by logical id; for a new deployment, tables that an earlier attempt took over.
        how: the option ADOPT: ``ask``, ``newest``, ``none``, or names of tables, separated by commas.
        new: whether nothing has been deployed yet.

    Raises:
        CliError: nobody has decided about a table with data, the choice is ambiguous, or a table cannot be taken over.
    """
    name = settings.chaos.deployment
    parts_by_id = retained.parts(template)
    if new and (taken := {part: there[key].physical_id for key, part in parts_by_id.items() if key in there}):
        _refuse_to_throw_away(settings, "first remove the stack with make destroy, which keeps them")
        _say_taken(taken)
    missing = {part for key, part in parts_by_id.items() if key not in there}
    held = {resource.physical_id for resource in there.values()}
    every = [table for table in retained.find_retained(session, name) if table.part in parts_by_id.values()]
    free = [table for table in every if table.name not in held]
    undecided = [table for table in free if not table.declined]
    if how == "none":
        return Adoption(declined=_declined([table for table in undecided if not table.empty]))
    if by_name := how not in ("ask", "newest"):
        # An earlier attempt may have taken over some of them.
        names = [one for part in how.split(",") if (one := part.strip()) and one not in held]
        meant = retained.named(free, names)
        if has := sorted({table.part for table in meant} - missing):
            raise CliError(
                Exit.USAGE,
                f"the deployment already has tables for {', '.join(has)}: first remove it with make destroy, which "
                "keeps them, and name the tables again",
            )
    else:
        # A stack counts as used if any of its tables has items, including those that this stack has already taken over.
        used = retained.used(proven(session, name, every if undecided else []))
        meant = [table for table in used if table.part in missing and table.name in {one.name for one in undecided}]
    chosen = retained.choose(meant, newest=how == "newest")
    others = [table for table in undecided if table.name not in {one.name for one in chosen.values()}]
    decided = others if by_name else [table for table in others if table in meant]
    if left := [table for table in others if table not in decided and not table.empty]:
        raise _undecided(left, chosen, missing)
    if new:
        _say_unused([table for table in others if table.empty], str(session.region_name))
    if not chosen:
        return Adoption(declined=_declined([table for table in decided if not table.empty]))
    _refuse_to_throw_away(settings, "start with empty tables with ADOPT=none")
    tables = retained.imports(template, chosen)
    retained.refuse_shared(session, tables.values())
    say("This deployment takes over these tables of an earlier one of this name (not with ADOPT=none):")
    for table in tables.values():
        say(f"  {table}")
    if new:
        say("The salt is new. To check rolls of earlier days, use the earlier secret.")
    return Adoption(tables, _declined([table for table in decided if not table.empty]))


def _undecided(
    tables: Sequence[retained.RetainedTable], chosen: Mapping[str, retained.RetainedTable], missing: Set[str]
) -> CliError:
    """Returns the refusal to deploy beside tables with data about which nobody has decided.

    Anyone who may make and tag tables can make one look like the deployment's, with an unleashed switch. So only a
    person can decide about a table of unknown origin.
    """
    listing = "\n".join(f"  {table}{'' if table.stacks else ', of unknown origin'}" for table in tables)
    take = {table.part: table.name for table in reversed(tables)} | {part: t.name for part, t in chosen.items()}
    adopt = f"ADOPT={','.join(take[part] for part in sorted(take))}"
    if not take.keys() <= missing:
        adopt = f"make destroy, which keeps all tables, and then make deploy {adopt}"
    return CliError(
        Exit.USAGE,
        f"tables with data have the tags of this deployment, which does not use them:\n{listing}\n"
        f"Nothing was changed. If you trust their contents, use them with {adopt}. Otherwise decline them with "
        "ADOPT=none: they stay, but no deployment uses them",
    )


def _declined(tables: Sequence[retained.RetainedTable]) -> Sequence[retained.RetainedTable]:
    if tables:
        say("These tables of earlier deployments are not used, and get a tag that says so:")
        for table in tables:
            say(f"  {table}")
    return tables


def say_left(
    before: Mapping[str, Any], template: Mapping[str, Any], there: Mapping[str, Resource], region: str
) -> None:
    """Prints the tables and buckets that leave the stack with this deployment, and which of them stay."""
    out = {key: resource.physical_id for key, resource in there.items() if key not in template["Resources"]}
    if not any(there[key].kind in _DATA for key in out):
        return
    staying = {r.physical_id: r for r in leftovers(before, out, region) if r.kind in _DATA.values()}
    going = [i for key, i in out.items() if there[key].kind in _DATA and i not in staying]
    if going:
        say(f"No longer part of this deployment, and deleted with their contents: {', '.join(going)}")
    if not staying:
        return
    say("No longer part of this deployment, but retained at the cost of their storage; Troop cannot show them:")
    for leftover in staying.values():
        say(f"  {leftover.kind} {leftover.physical_id}")
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
    say("Empty tables have the tags of this deployment, as a first deployment that failed leaves them.")
    say("They are not taken over. To remove them, run:")
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
