"""Implements `troop groups` and `troop group`: what takes part, and with which policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from cli.chaos.events import row
from cli.chaos.units import lapse, missing_alarms, protection
from cli.client.connection import connection
from cli.shared import show

AsJson = Annotated[bool, typer.Option("--json", help="One JSON document.")]
_COLUMNS = (
    "unit",
    "group",
    "takes part",
    "probability",
    "at least",
    "in service",
    "calendar",
    "last",
    "owner",
    "why skipped",
)
_EVENT_COLUMNS = ("when", "group", "status", "instance", "recovered after", "detail")


def groups(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List all Auto Scaling groups with their policy, and why those that do not take part are skipped."""
    listing = list(connection(ctx).client.groups())
    if as_json:
        show.document({"groups": listing})
    elif listing:
        malformed = {group["unit"] for group in listing if group["problems"]}  # one group's problem skips its unit
        ordered = sorted(listing, key=lambda g: (g["unit"], g["group"]))
        show.table(_COLUMNS, [_group_row(group, group["unit"] in malformed) for group in ordered])
    else:
        show.note("this account and region have no Auto Scaling groups")


def _group_row(group: Mapping[str, Any], malformed: bool) -> tuple[Any, ...]:
    remarks = [_left_alone(group), *group["problems"]]
    return (
        group["unit"],
        group["group"],
        _part(group, malformed),
        group["probability"],
        group["min_healthy"],
        f"{group['in_service']} of {group['desired']}",
        group["calendar"],
        group["last_day"],
        group.get("owner"),
        "; ".join(filter(None, remarks)),
    )


def _left_alone(group: Mapping[str, Any]) -> str:
    """Returns why a unit is skipped, except for malformed values. Older deployments return no end and no reason."""
    if tag := group.get("protected"):
        return f"tag {tag}"
    if group["unrecovered"]:
        return f"has not recovered from {lapse(group)}"
    if group["takes_part"] or group["problems"]:
        return ""
    if group["sources"].get("takes_part") == "settings":
        return "not opted in"
    until, reason = group.get("until"), group.get("reason")
    return "opted out" + (f" until {until}" if until else "") + (f": {reason}" if reason else "")


def _part(group: Mapping[str, Any], malformed: bool) -> str:
    if group.get("protected"):
        return "no (protected)"
    if malformed:
        return "no (malformed)"
    return "no (unrecovered)" if group["unrecovered"] else _yes(group["takes_part"])


def group(
    ctx: typer.Context,
    unit: Annotated[str, typer.Argument(help="The name of a unit or group.")],
    as_json: AsJson = False,
) -> None:
    """Show one unit: its policy with the source of each value, its last decision and its last events."""
    record = connection(ctx).client.known_unit(unit)
    if as_json:
        show.document(record)
    else:
        describe(record)


def describe(unit: Mapping[str, Any]) -> None:
    """Prints a unit, as GET /groups/{unit} returns it, for people."""
    groups = [g["group"] + (" (protected)" if g.get("protected") else "") for g in unit["groups"]]
    facts = [
        ("unit", unit["unit"]),
        ("groups", groups or "none yet"),
        ("last terminated on", unit["last_day"]),
        ("next possible", show.moment(unit["next_possible"])),
    ]
    if decision := unit["decision"]:
        facts.append(("last decision", f"{show.moment(decision['tick'])}: {decision['reason']}: {decision['detail']}"))
    show.table(("", ""), facts)
    if tag := protection(unit):
        show.say(f"Protected by the {tag} of its groups: Troop never terminates their instances.", style="cyan")
    if unit["unrecovered"]:
        show.say(
            f"Not recovered from {lapse(unit)}. Skipped until you run `troop opt-in {unit['unit']}`.",
            style="bold red",
        )
    for problem in unit["problems"]:
        show.say(f"Skipped, because its policy is malformed: {problem}", style="bold red")
    for words in missing_alarms(unit):
        show.say(words, style="bold red")
    policy = [
        (k, _yes(s["value"]) if k == "takes_part" else s["value"], s["source"]) for k, s in unit["policy"].items()
    ]
    if policy:
        show.table(("policy", "value", "from"), policy, title="\nPolicy")
    if unit["events"]:
        show.table(_EVENT_COLUMNS, map(_event, unit["events"]), title="\nLast events")
    if unit["changes"]:
        show.table(("when", "by", "changes"), map(_change, unit["changes"]), title="\nLast changes")


def _event(event: Mapping[str, Any]) -> tuple[Any, ...]:
    when, _, group, status, instance, _, recovered, detail = row(event)
    return (when, group, status, instance, recovered, detail)


def _change(change: Mapping[str, Any]) -> tuple[Any, ...]:
    parts = [f"{key}: {show.plain(c.get('old'))} -> {show.plain(c.get('new'))}" for key, c in change["changes"].items()]
    return (show.moment(change["at"]), change["caller"], "; ".join(parts))


def _yes(value: Any) -> str:
    return "yes" if value else "no"
