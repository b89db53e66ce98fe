"""Implements `troop groups` and `troop group`: what takes part, and with which policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from operator import itemgetter
from typing import Annotated, Any

import typer

from cli.chaos import banner, course
from cli.chaos.changes import in_words, who
from cli.chaos.events import row
from cli.chaos.units import faults_inside, missing_alarms, outlook, possible, state, value
from cli.client.connection import Connection, connection
from cli.client.everywhere import Table, everywhere, finish
from cli.shared import listings, show, watching
from cli.shared.listings import Column
from cli.shared.watching import Watch
from troop.shared.formatting import counted

AsJson = Annotated[bool, typer.Option("--json", help="One JSON document.")]


class TakesPart(StrEnum):
    """Whether a group can be hit."""

    YES = "yes"
    NO = "no"


_EVENT_COLUMNS = ("when", "group", "method", "status", "verdict", "instance", "recovered after", "detail")
_CHANGE_COLUMNS = ("when", "by", "changes")
_COLUMNS = (
    Column("unit", itemgetter("unit")),
    Column("group", itemgetter("group")),
    Column("takes part", state),
    Column("probability", itemgetter("probability")),
    Column("at least", itemgetter("min_healthy")),
    Column(
        "in service", lambda group: f"{group['in_service']} of {group['desired']}", lambda group: group["in_service"]
    ),
    Column("calendar", itemgetter("calendar")),
    Column("last", itemgetter("last_day")),
    Column("owner", lambda group: group.get("owner")),
    Column("method", lambda group: group.get("method"), wide=True),
    Column("why skipped", lambda group: str(outlook(group)["why"])),
)
_DROPPED = ("calendar", "at least", "last", "probability", "in service", "owner", "group")


def groups(
    ctx: typer.Context,
    owner: Annotated[str | None, typer.Option(help="Only groups of this owner; '' for those without one.")] = None,
    calendar: Annotated[str | None, typer.Option(help="Only groups on this calendar.")] = None,
    takes_part: Annotated[
        TakesPart | None, typer.Option("--takes-part", case_sensitive=False, help="Only groups that do, or do not.")
    ] = None,
    because: Annotated[
        str | None, typer.Option("--skipped-because", metavar="TEXT", help="Only groups skipped for such a reason.")
    ] = None,
    sort: listings.Sort = None,
    reverse: listings.Reverse = False,
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="Show at most this many groups.")] = None,
    watch: Watch = None,
    output: listings.Output = None,
    as_json: listings.AsJson = False,
) -> None:
    """List all Auto Scaling groups with their policy, and why those that do not take part are skipped."""
    form, all_of_them = listings.form_of(output, as_json), everywhere(ctx)
    if sort is not None:
        listings.by(_COLUMNS, sort)

    def matches(group: Mapping[str, Any]) -> bool:
        why = f"{state(group)} {outlook(group)['why']}".removeprefix("yes ") if because else ""
        return (
            (owner is None or (group.get("owner") or "").casefold() == owner.casefold())
            and (calendar is None or group["calendar"] == calendar)
            and (takes_part is None or outlook(group)["takes_part"] is (takes_part is TakesPart.YES))
            and (because is None or because.casefold() in why.casefold())
        )

    def chosen(conn: Connection) -> tuple[list[dict[str, Any]], int]:
        """Returns the groups that match, and how many there are."""
        listing = list(conn.client.groups())
        if not listings.is_for_programs(form):
            listing.sort(key=lambda group: (group["unit"], group["group"]))
        return listings.ordered(filter(matches, listing), _COLUMNS, sort, reverse)[:limit], len(listing)

    if all_of_them:
        table = Table(_COLUMNS, itemgetter("groups"), _DROPPED, sort, reverse, empty="no group matches")
        finish(all_of_them.show(form, lambda conn: {"groups": chosen(conn)[0]}, table=table, watch=watch, seconds=60))
        return
    conn = connection(ctx)

    def fetch() -> tuple[list[dict[str, Any]], int, Callable[[], None]]:
        tell_banner = banner.ask(conn.client)
        return *chosen(conn), tell_banner

    def tell(fetched: tuple[list[dict[str, Any]], int, Callable[[], None]]) -> None:
        records, total, tell_banner = fetched
        tell_banner()
        if records or listings.is_for_programs(form):
            document = {"groups": records}
            listings.tell(form, _COLUMNS, records, document, drop=_DROPPED, repeated=watch is not None)
        elif total:
            show.note(f"none of {counted(total, 'group')} matches")
        else:
            show.note("this account and region have no Auto Scaling groups")

    watching.repeat(watch, fetch, tell)


def group(
    ctx: typer.Context,
    unit: Annotated[str, typer.Argument(help="The name of a unit or group.")],
    as_json: AsJson = False,
) -> None:
    """Show one unit: its policy with the source of each value, its last decision and its last events."""
    client = connection(ctx).client
    tell_banner = banner.ask(client)
    record = client.known_unit(unit)
    tell_banner()
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
        ("takes part", state(unit)),
        ("why skipped", outlook(unit)["why"]),
        ("last hit on", unit["last_day"]),
        ("next possible", possible(unit)),
    ]
    if inside := faults_inside(unit):
        facts.append(("faults inside", inside))
    if decision := unit["decision"]:
        facts.append(("last decision", f"{show.moment(decision['tick'])}: {decision['reason']}: {decision['detail']}"))
    show.table(("", ""), facts)
    if unit["unrecovered"]:
        show.say(f"`troop opt-in {unit['unit']}` returns it to chaos.", style="bold red")
    for words in missing_alarms(unit):
        show.say(words, style="bold red")
    policy = [(key, value(key, sourced["value"]), sourced["source"]) for key, sourced in unit["policy"].items()]
    if policy:
        show.table(("policy", "value", "from"), policy, title="\nPolicy")
    if unit["events"]:
        show.table(
            _EVENT_COLUMNS, map(_event, unit["events"]), title="\nLast events", drop=("group", "instance", "method")
        )
    if unit["changes"]:
        show.table(_CHANGE_COLUMNS, map(_change, unit["changes"]), title="\nLast changes", drop=("by",))


def _event(event: Mapping[str, Any]) -> tuple[Any, ...]:
    when, _, group, status, instance, _, recovered, detail = row(event)
    return (when, group, event["method"], status, course.verdict(event), instance, recovered, detail)


def _change(change: Mapping[str, Any]) -> tuple[Any, ...]:
    return (show.moment(change["at"]), who(change["caller"]), in_words(change))
