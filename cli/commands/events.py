"""Implements `troop events`: lists terminations and lasting faults, newest first, follows them, or shows one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Annotated, Any

import typer

from cli.chaos import banner, course
from cli.chaos.events import check_names, row
from cli.client.client import TroopClient
from cli.client.connection import connection
from cli.client.everywhere import Table, everywhere, finish
from cli.shared import listings, show, times, watching
from cli.shared.errors import CliError, Exit
from cli.shared.listings import Column, Form
from cli.shared.watching import Watch
from troop.chaos.events import OPEN, Status, exception_of, to_url
from troop.chaos.verdict import VerdictValue
from troop.shared import moments, values

_POLL_SECONDS = 5.0
_FOLLOWED = 500
"""Events that --follow reads at each poll: more than a deployment claims between two polls."""

_COLUMNS = (
    Column("when", lambda event: row(event)[0], lambda event: event["at"]),
    Column("unit", lambda event: event["unit"]),
    Column("group", lambda event: event["group"]),
    Column("method", lambda event: event["method"]),
    Column("status", lambda event: event["status"]),
    Column("verdict", course.verdict),
    Column("instance", lambda event: event["instance_id"]),
    Column("zone", lambda event: event["zone"]),
    Column("recovered after", lambda event: row(event)[6], lambda event: event.get("recovery_seconds")),
    Column("detail", lambda event: row(event)[7]),
    Column("id", lambda event: event["event_id"], wide=True),
)
_DROPPED = ("zone", "group", "recovered after", "instance", "method", "detail")
_OPEN = frozenset(str(status) for status in OPEN)


def events(
    ctx: typer.Context,
    id: Annotated[
        str | None, typer.Argument(metavar="ID", help="Show the stages and the verdict of this event.")
    ] = None,
    group: Annotated[str | None, typer.Option(help="Only events of this Auto Scaling group.")] = None,
    unit: Annotated[str | None, typer.Option(help="Only events of this unit.")] = None,
    since: Annotated[
        str | None, typer.Option(help="From then on: 2026-11-20, 2026-11-20T14:00, yesterday, 2d or 3h.")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Before then, in the same formats.")] = None,
    day: Annotated[
        str | None, typer.Option(help="Only that day on your clock: YYYY-MM-DD, today or yesterday.")
    ] = None,
    status: Annotated[Status | None, typer.Option(case_sensitive=False, help="Only events with this status.")] = None,
    verdict: Annotated[
        VerdictValue | None, typer.Option(case_sensitive=False, help="Only events with this verdict.")
    ] = None,
    sort: listings.Sort = None,
    reverse: listings.Reverse = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Show at most this many events.")] = 25,
    watch: Watch = None,
    output: listings.Output = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="The same as -o json; with --follow, one object per line.")
    ] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep showing new events until Ctrl-C.")] = False,
) -> None:
    """Show terminations and faults, newest first, or the course of one."""
    form, all_of_them = listings.form_of(output, as_json), everywhere(ctx, {"an id": id, "--follow": follow})
    if id is not None:
        chosen: dict[str, object] = {"--group": group, "--unit": unit, "--since": since, "--until": until, "--day": day}
        chosen |= {"--status": status, "--verdict": verdict, "--sort": sort, "--reverse": reverse, "--follow": follow}
        if needless := [option for option, value in chosen.items() if value]:
            raise CliError(Exit.USAGE, f"an id is one event: remove {', '.join(needless)}")
        _show_one(connection(ctx).client, _path(id), form, watch)
        return
    if sort is not None:
        listings.by(_COLUMNS, sort)
    _check_options(
        follow, {"--until": until, "--day": day, "--sort": sort, "--reverse": reverse, "--watch": watch}, form
    )
    if day and (since or until):
        raise CliError(Exit.USAGE, "--day is a whole day: remove --since and --until, or --day")

    def filters() -> dict[str, str]:
        """Returns the query; ages and days depend on the time of each look."""
        now = times.now()
        query = {"group": group, "unit": unit, "status": status and str(status), "verdict": verdict and str(verdict)}
        query |= {"since": times.moment_of("--since", since, now), "until": times.moment_of("--until", until, now)}
        query |= _day_bounds(day, now) if day else {}
        return {key: value for key, value in query.items() if value}

    def matches(client: TroopClient) -> list[dict[str, Any]]:
        terminations = client.events(filters(), limit)
        if not terminations:
            check_names(client, group, unit)
        return terminations

    query = filters()
    if all_of_them:
        table = Table(_COLUMNS, itemgetter("events"), _DROPPED, sort, reverse, newest=True, empty="no events match")
        finish(all_of_them.show(form, lambda conn: {"events": matches(conn.client)}, table=table, watch=watch))
        return
    client = connection(ctx).client
    if follow:
        if (group or unit) and not client.events(query, 1):
            check_names(client, group, unit)
        banner.ask(client)()
        _follow(client, query, limit, form is Form.JSON)
        return

    def fetch() -> tuple[list[dict[str, Any]], Callable[[], None]]:
        tell_banner = banner.ask(client)
        return listings.ordered(matches(client), _COLUMNS, sort, reverse), tell_banner

    def tell(state: tuple[list[dict[str, Any]], Callable[[], None]]) -> None:
        terminations, tell_banner = state
        tell_banner()
        if terminations or listings.is_for_programs(form):
            document = {"events": terminations}
            listings.tell(form, _COLUMNS, terminations, document, drop=_DROPPED, repeated=watch is not None)
        else:
            show.note("no events match")

    watching.repeat(watch, fetch, tell)


def _path(id: str) -> str:
    """Returns the id as the path of the API has it. People copy the one of tables, or the one of JSON.

    Raises:
        CliError: USAGE, if it is neither.
    """
    if "#" in id:
        return to_url(id)
    if "~" not in id:
        raise CliError(
            Exit.USAGE, f"{id} is no event's id, such as 2026-11-20#web: `troop events --unit UNIT -o wide` shows them"
        )
    return id


def _show_one(client: TroopClient, path: str, form: Form, watch: float | None) -> None:
    def tell(event: dict[str, Any]) -> None:
        if listings.is_for_programs(form):
            listings.write(form, [event], event, repeated=watch is not None)
        else:
            describe(event)

    watching.repeat(watch, lambda: client.event(path), tell)


def describe(event: Mapping[str, Any]) -> None:
    """Prints an event, as GET /events/{id} returns it, for people."""
    verdict, judgement = course.verdict(event), event.get("verdict") or {}
    exception = event.get("terminated_at") and exception_of(event["method"], event.get("os_shutdown"))
    abort = event.get("abort") if not course.hit_at(event) else None  # the course has that of a hit
    facts = [
        ("event", event["event_id"]),
        ("unit", event["unit"]),
        ("instance", f"{event['instance_id']} of {event['group']}" + (f" in {z}" if (z := event["zone"]) else "")),
        ("method", "; ".join(filter(None, (course.fault(event), exception)))),
        ("claimed", show.moment(event["at"])),
        ("requested by", f"the run {run}, under its load" if (run := event.get("benchmark")) else ""),
        ("status", event["status"]),
        ("detail", event["detail"]),
        ("installed, and stays", ", ".join((event.get("injection") or {}).get("packages", ()))),
        ("went off", f"alarm {abort['alarm']} at {show.moment(abort['at'])}" if abort else ""),
        ("hypothesis", course.hypothesis(event)),
        ("stop alarms", (event.get("hypothesis") or {}).get("stop_alarms")),
        ("verdict", verdict),
        ("why", f"the alarms can be judged from {event['settles_at']} on" if course.awaits_verdict(event) else ""),
        ("why", judgement.get("why")),
        ("last failed launch", event.get("launch_failure")),
        ("replacement", (event.get("replacement") or {}).get("summary")),
    ]
    always = ("status", "hypothesis", "verdict")
    show.table(("", ""), [fact for fact in facts if fact[1] or fact[0] in always])
    if taken := course.steps(event):
        rows = [(step.after, step.words, show.moment(step.at) if step.at else None) for step in taken]
        show.table(("after", "course", "at"), rows, title="\nCourse", drop=("at",))
    if states := course.alarm_states(event):
        alarms = [(name, show.moment(at) if at else None, state) for name, at, state in states]
        show.table(("alarm", "from", "state"), alarms, title="\nSuccess alarms")


def _check_options(follow: bool, needless: Mapping[str, object], form: Form) -> None:
    """Refuses options that contradict --follow.

    Raises:
        CliError: USAGE.
    """
    if not follow:
        return
    for option, value in needless.items():
        if value:
            why = "--follow never ends" if option in ("--until", "--day") else "--follow shows events as they come"
            raise CliError(Exit.USAGE, f"{why}: remove {option}")
    if form not in (Form.TABLE, Form.JSON):
        raise CliError(Exit.USAGE, f"--follow prints lines or JSON: remove --output {form}")


def _day_bounds(text: str, now: datetime) -> dict[str, str | None]:
    """Returns the bounds of a day on this machine's clock, which may have 23 or 25 hours."""
    try:
        day = values.day(times.day_in_words(text, now))
        following = times.midnight(day + timedelta(days=1))
    except (values.BadValue, OverflowError):
        raise CliError(Exit.USAGE, f"--day is {text!r}: must be a day, YYYY-MM-DD, today or yesterday") from None
    return {"since": moments.iso(times.midnight(day)), "until": moments.iso(following)}


def _follow(client: TroopClient, query: Mapping[str, str], limit: int, as_json: bool) -> None:
    lines: dict[str, str] = {}
    for event in changes(client, query, limit, time.sleep):
        if as_json:
            show.line(event)
        else:
            when, unit, group, status, instance, _, recovered, detail = (show.plain(v) for v in row(event))
            verdict = course.verdict(event)
            after = f" ({recovered})" if course.victim_stays(event) else f" after {recovered}"
            after = after if recovered != show.NOTHING else ""
            after += f" (verdict {verdict})" if verdict else ""
            suffix = f": {detail}" if detail != show.NOTHING else ""
            line = f"{when}  {unit} ({group})  {event['method']}  {status}{after}  {instance}{suffix}"
            if lines.get(event["event_id"]) != line:  # a line has no stages
                lines[event["event_id"]] = line
                show.say(line)


def changes(
    client: TroopClient, query: Mapping[str, str], limit: int, sleep: Callable[[float], None]
) -> Iterator[dict[str, Any]]:
    """Yields the latest events, oldest first, and then each new or changed event, without end."""
    seen: dict[str, dict[str, Any]] = {}
    batch = client.events(query, limit)
    began = query.get("since", moments.iso(datetime.now(UTC)))
    while True:
        for event in reversed(batch):
            before, seen[event["event_id"]] = seen.get(event["event_id"]), event
            if before is None or _news(before) != _news(event):
                yield event
        # Events before the earliest open one no longer change; a leashed event may still become a claim.
        unfinished = [e["at"] for e in seen.values() if e["status"] in _OPEN or course.awaits_verdict(e)]
        latest = max((e["at"] for e in seen.values()), default=began)
        since = min([*unfinished, latest])
        seen = {key: event for key, event in seen.items() if event["at"] >= since}
        sleep(_POLL_SECONDS)
        batch = client.events({**query, "since": since}, _FOLLOWED)


def _news(event: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the event without what every check of its group changes."""
    return {key: value for key, value in event.items() if key != "short_at"}
