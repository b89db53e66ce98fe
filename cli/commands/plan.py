"""Implements `troop plan`: forecasts every decision of a day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.chaos.banner import show_banner
from cli.client.deployment import find_deployment
from cli.forecasts import group_files, live_account, what_if
from cli.shared import aws, context, listings, settings_files, show
from cli.shared.errors import CliError, Exit
from cli.shared.listings import Column, Form
from cli.shared.settings_files import TriedSettings
from troop.chaos import forecast
from troop.chaos.change_calendars import assumptions
from troop.chaos.expected_ticks import ticks_of
from troop.chaos.facts import Account, Switch
from troop.chaos.forecast import LEASHED, ReadDetails, UnitDay
from troop.shared import moments, zones
from troop.shared.calendars import Calendar, clock
from troop.shared.settings import Settings

_DROPPED = ("due", "tick", "why")


@dataclass(frozen=True)
class _Basis:
    """The input of a plan. ``after``: the moment up to which ticks are over; None for groups of a file."""

    account: Account
    settings: TriedSettings
    salt: bytes
    after: datetime | None
    read_details: ReadDetails
    where: str
    notes: list[str]


def plan(
    ctx: typer.Context,
    day: Annotated[
        str | None, typer.Option("--day", help="YYYY-MM-DD or tomorrow; by default today, on each calendar.")
    ] = None,
    groups: Annotated[
        Path | None, typer.Option("--groups", help="A YAML or JSON list of groups, instead of the account's.")
    ] = None,
    settings: what_if.SettingsFile = None,
    salt: what_if.Salt = None,
    unleashed: Annotated[
        bool, typer.Option("--unleashed", help="Plan as if the deployment were neither leashed nor halted.")
    ] = False,
    sort: listings.Sort = None,
    reverse: listings.Reverse = False,
    output: listings.Output = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="The same as -o json: one document, with the decision of every tick.")
    ] = False,
) -> None:
    """Show every decision of a day in advance, by the code that decides in Lambda. Changes nothing.

    For the account, uses the deployment's settings and salt: the plan names each unit that will be hit, the time and
    the instance. With --groups, needs no AWS.
    """
    form = listings.form_of(output, as_json)
    if sort is not None:
        listings.by(_columns({}), sort)
    now = what_if.now()
    requested_day = what_if.day(day, "--day") if day else None
    if groups:
        basis = _file_basis(groups, settings, salt)
    else:
        basis = _account_basis(ctx.obj, settings, salt, unleashed, now, requested_day)
    chosen = basis.settings.chaos
    days = _days(chosen, requested_day, now)
    if basis.after and all(days[name] < calendar.at(now).day for name, calendar in chosen.calendars.items()):
        raise CliError(Exit.USAGE, f"--day is {day!r}: must not be in the past; `troop events` shows what happened")
    unit_days = forecast.plan(
        basis.account, chosen, basis.salt, basis.settings.tick_minutes, days, basis.after, basis.read_details
    )
    columns = _columns(chosen.calendars)
    unit_days = listings.ordered(unit_days, columns, sort, reverse)
    calendars = [_calendar(c, days[c.name], basis) for c in chosen.calendars.values()]
    notes = what_if.assumptions(*basis.notes)
    if listings.is_for_programs(form):
        units = [_unit(u, chosen) for u in unit_days]
        document = {"day": str(days["default"]), "time_zones": zones.VERSION, "units": units, "calendars": calendars}
        listings.write(form, units, document | {"of": basis.where, "assumptions": notes})
    else:
        if not groups and show.has_reader():
            switch = basis.account.switch
            show_banner({"halted": switch.halted, "leashed": switch.leashed})
        _show(basis.where, unit_days, calendars, columns, form)
        what_if.tell(notes)


def _file_basis(groups: Path, settings: Path | None, salt: str | None) -> _Basis:
    tried = settings_files.load(settings)
    account = group_files.load(groups).account(tried.chaos)
    notes = [*what_if.FILE_ASSUMPTIONS, what_if.salt_note(salt)]
    return _Basis(account, tried, what_if.salt_of(salt), None, list, str(groups), notes)


def _days(settings: Settings, requested: date | None, now: datetime) -> dict[str, date]:
    """Returns the local day to plan, by calendar."""
    return {name: requested or calendar.at(now).day for name, calendar in settings.calendars.items()}


def _account_basis(
    options: context.Options,
    settings: Path | None,
    salt: str | None,
    unleashed: bool,
    now: datetime,
    requested_day: date | None,
) -> _Basis:
    tried = settings_files.load(settings) if settings else None
    session = aws.make_session(options.profile, options.region)
    deployment = find_deployment(session, options.deployment)
    chosen = tried or live_account.deployed_settings(session, deployment)
    key = what_if.salt_of(salt) if salt is not None else live_account.salt(session, deployment)
    reader = live_account.reader(session, deployment, chosen.chaos)
    calendars = chosen.chaos.calendars
    windows = [calendars[name].window(day) for name, day in _days(chosen.chaos, requested_day, now).items()]
    first, last = min(opens for opens, _ in windows), max(closes for _, closes in windows)
    account = live_account.account(reader, first, last)
    notes = [
        "instance refreshes, stop alarms and the health reported by load balancers stay as they are now",
        *assumptions(account.changes),
    ]
    if unleashed:
        account = replace(account, switch=Switch(halted=False, leashed=False))
    if salt is not None:
        notes.append(what_if.salt_note(salt))
    return _Basis(account, chosen, key, now, live_account.details_reader(reader), str(deployment), notes)


def _calendar(calendar: Calendar, day: date, basis: _Basis) -> dict[str, Any]:
    ticks = ticks_of(calendar, day, basis.settings.tick_minutes)
    closure = calendar.day_off(day) or calendar.frozen(day)
    opens, closes = calendar.hours(day)
    return {
        "calendar": calendar.name,
        "day": str(day),
        "time_zone": calendar.time_zone,
        "open": clock(opens),
        "close": clock(closes),
        "half_day": ", ".join(extra.name for extra in calendar.extras(day) if extra.hours and not closure) or None,
        "closed": {"reason": closure.kind, "detail": closure.detail} if closure else None,
        "ticks": [moments.iso(t) for t in ticks if basis.after is None or t > basis.after],
    }


def _unit(unit: UnitDay, settings: Settings) -> dict[str, Any]:
    outcome = unit.outcome
    target = outcome.target
    hit = target is not None
    return {
        "unit": outcome.unit,
        "groups": list(outcome.groups),
        "calendar": unit.calendar,
        "day": str(outcome.day) if outcome.day else None,
        "reason": outcome.reason,
        "detail": outcome.detail,
        "rolled": outcome.rolled,
        "probability": None if outcome.policy.problems else outcome.policy.probability.value,
        "due": moments.iso(unit.due) if unit.due else None,
        "tick": moments.iso(outcome.tick) if hit else None,
        "local_tick": settings.calendars[unit.calendar].local(outcome.tick).isoformat() if hit else None,
        "method": outcome.policy.method.value if hit else None,
        "target": {
            "group": target.group.name,
            "instance_id": target.instance.instance_id,
            "zone": target.instance.zone,
        }
        if target
        else None,
        "decisions": [{"tick": moments.iso(d.tick), "reason": d.reason, "detail": d.detail} for d in unit.decisions],
    }


def _show(
    where: str,
    unit_days: list[UnitDay],
    calendars: Sequence[Mapping[str, Any]],
    columns: Sequence[Column],
    form: Form,
) -> None:
    for calendar in calendars:
        window = f"{calendar['open']} to {calendar['close']} {calendar['time_zone']}"
        day = f"{date.fromisoformat(calendar['day']):%A} {calendar['day']}"
        closed = calendar["closed"]
        state = (
            f"closed, {closed['reason']}: {closed['detail']}" if closed else f"{len(calendar['ticks'])} ticks to come"
        )
        if calendar["half_day"]:
            state = f"half day, {calendar['half_day']}: {state}"
        show.say(f"{day}, calendar {calendar['calendar']} ({window}): {state}")
    if unit_days:
        listings.tell(form, columns, unit_days, {}, drop=_DROPPED)
        reasons = Counter(unit.outcome.reason for unit in unit_days)
        show.say(", ".join(f"{reason} {count}" for reason, count in reasons.most_common()))
    else:
        show.note(f"no groups in {where}")


def _columns(calendars: Mapping[str, Calendar]) -> tuple[Column, ...]:
    """Returns the columns of the table; times are those of the units' calendars."""

    def due(unit: UnitDay) -> str:
        return f"{calendars[unit.calendar].local(unit.due):%H:%M}" if unit.due else ""

    def tick(unit: UnitDay) -> str:
        return f"{calendars[unit.calendar].local(unit.outcome.tick):%H:%M}" if unit.outcome.target else ""

    return (
        Column("unit", lambda unit: unit.outcome.unit),
        Column("outcome", lambda unit: str(unit.outcome.reason)),
        Column("due", due),
        Column("tick", tick),
        Column("why", _why),
    )


def _why(unit: UnitDay) -> str:
    outcome = unit.outcome
    if outcome.target is None:
        return outcome.detail
    instance, group = outcome.target.instance, outcome.target.group
    zone = f" in {instance.zone}" if instance.zone else ""
    would = "would be terminated" + (", were it not leashed" if outcome.reason == LEASHED else "")
    return f"{instance.instance_id} of {group.name}{zone} {would}"
