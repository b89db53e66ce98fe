"""Implements `troop plan`: forecasts every decision of a day, or the next days of one unit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.chaos import unit_days
from cli.chaos.banner import show_banner
from cli.client.deployment import find_deployment
from cli.forecasts import group_files, live_account, unit_ahead, what_if
from cli.forecasts.calendar_ahead import Basis
from cli.shared import aws, context, listings, settings_files, show
from cli.shared.errors import CliError, Exit
from cli.shared.listings import Column, Form
from cli.shared.settings_files import TriedSettings
from troop.chaos import forecast
from troop.chaos.change_calendars import assumptions
from troop.chaos.expected_ticks import ticks_of
from troop.chaos.facts import Account, Switch
from troop.chaos.forecast import LEASHED, ReadDetails, UnitDay
from troop.chaos.units import by_unit
from troop.shared import moments, zones
from troop.shared.calendars import Calendar, clock
from troop.shared.settings import Settings

_DROPPED = ("due", "tick", "why")

_AS_THEY_ARE = "instance refreshes, alarms and the health reported by load balancers stay as they are now"

MOST_DAYS = 92
"""The most days of a unit."""


@dataclass(frozen=True)
class _Basis:
    """The input of a plan.

    Attributes:
        salt: None if the caller may not read it, which only a plan of one unit accepts.
        no_salt: why there is no salt.
        after: the moment up to which ticks are over; None for groups of a file.
    """

    account: Account
    settings: TriedSettings
    salt: bytes | None
    after: datetime | None
    read_details: ReadDetails
    where: str
    notes: list[str]
    no_salt: str = ""


def plan(
    ctx: typer.Context,
    unit: Annotated[
        str | None,
        typer.Option(
            "--unit",
            metavar="UNIT",
            help="What the next days bring for this unit, day by day: the minute and the instance; or, for callers who "
            "may not read the salt, the odds.",
        ),
    ] = None,
    days: Annotated[
        int | None,
        typer.Option("--days", metavar="N", min=1, max=MOST_DAYS, help="Days of --unit, with today. Default: 14."),
    ] = None,
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
    the instance. With --unit, lists the next days of one unit. With --groups, needs no AWS.
    """
    form = listings.form_of(output, as_json)
    if sort is not None:
        listings.by(_columns({}), sort)
    now = what_if.now()
    if unit is not None:
        if day or sort or reverse:
            raise CliError(Exit.USAGE, "--unit lists days in order: omit --day, --sort and --reverse, and use --days")
        ahead = timedelta(days=days or unit_ahead.DAYS)
        if groups:
            basis = _file_basis(groups, settings, salt)
        else:
            basis = _account_basis(ctx.obj, settings, salt, unleashed, now, lambda _: (now, now + ahead))
        _plan_unit(basis, unit, now, ahead.days, form)
        return
    if days is not None:
        raise CliError(Exit.USAGE, "--days needs --unit: without it, the plan is of one --day")
    requested_day = what_if.day(day, "--day") if day else None
    if groups:
        basis = _file_basis(groups, settings, salt)
    else:
        basis = _account_basis(ctx.obj, settings, salt, unleashed, now, partial(_windows, requested_day, now))
    if basis.salt is None:
        raise CliError(Exit.FORBIDDEN, f"{basis.no_salt}; `troop plan --unit UNIT` tells the odds without it")
    chosen = basis.settings.chaos
    local_days = _days(chosen, requested_day, now)
    if basis.after and all(local_days[name] < calendar.at(now).day for name, calendar in chosen.calendars.items()):
        raise CliError(Exit.USAGE, f"--day is {day!r}: must not be in the past; `troop events` shows what happened")
    plans = forecast.plan(
        basis.account, chosen, basis.salt, basis.settings.tick_minutes, local_days, basis.after, basis.read_details
    )
    columns = _columns(chosen.calendars)
    plans = listings.ordered(plans, columns, sort, reverse)
    calendars = [_calendar(c, local_days[c.name], basis) for c in chosen.calendars.values()]
    notes = what_if.assumptions(*([] if groups else [_AS_THEY_ARE]), *basis.notes)
    if listings.is_for_programs(form):
        units = [_unit(u, chosen) for u in plans]
        document = {
            "day": str(local_days["default"]),
            "time_zones": zones.VERSION,
            "units": units,
            "calendars": calendars,
        }
        listings.write(form, units, document | {"of": basis.where, "assumptions": notes})
    else:
        if not groups and show.has_reader():
            switch = basis.account.switch
            show_banner({"halted": switch.halted, "leashed": switch.leashed})
        _show(basis.where, plans, calendars, columns, form)
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
    span_of: Callable[[Settings], tuple[datetime, datetime]],
) -> _Basis:
    tried = settings_files.load(settings) if settings else None
    session = aws.make_session(options.profile, options.region)
    deployment = find_deployment(session, options.deployment)
    chosen = tried or live_account.deployed_settings(session, deployment)
    key, no_salt = (what_if.salt_of(salt), "") if salt is not None else live_account.salt_or_why(session, deployment)
    reader = live_account.reader(session, deployment, chosen.chaos)
    account = live_account.account(reader, *span_of(chosen.chaos))
    notes = list(assumptions(account.changes))
    if unleashed:
        account = replace(account, switch=Switch(halted=False, leashed=False))
    if salt is not None:
        notes.append(what_if.salt_note(salt))
    return _Basis(account, chosen, key, now, live_account.details_reader(reader), str(deployment), notes, no_salt)


def _windows(requested: date | None, now: datetime, settings: Settings) -> tuple[datetime, datetime]:
    """Returns when the first window of the planned days opens, and the last one closes."""
    windows = [settings.calendars[name].window(day) for name, day in _days(settings, requested, now).items()]
    return min(opens for opens, _ in windows), max(closes for _, closes in windows)


def _plan_unit(basis: _Basis, name: str, now: datetime, days: int, form: Form) -> None:
    unit = _unit_named(basis, name)
    forecast_basis = Basis(basis.account, basis.settings, basis.salt, basis.no_salt)
    document = unit_ahead.document(forecast_basis, unit, now, days)
    document["assumptions"] = list(dict.fromkeys([*document["assumptions"], *basis.notes]))
    if listings.is_for_programs(form):
        listings.write(form, document["days"], document | {"of": basis.where})
        return
    probability = document["probability"]
    rolls = "its policy is malformed" if probability is None else f"probability {probability:g} on each open day"
    show.say(f"{unit}, calendar {document['calendar']} ({document['time_zone']}): {rolls}")
    columns = unit_days.ODDS if basis.salt is None else unit_days.OUTCOMES
    listings.tell(form, columns, document["days"], {}, drop=("hours", "instance"))
    show.say(unit_days.summary(document))
    what_if.tell(document["assumptions"])


def _unit_named(basis: _Basis, name: str) -> str:
    """Returns the unit of that name, or of the group of that name.

    Raises:
        CliError: NO_SUCH_UNIT.
    """
    units = by_unit(basis.account.groups, basis.settings.chaos.units)
    owners = {group.name: unit for unit, groups in units.items() for group in groups} | {unit: unit for unit in units}
    if name in owners:
        return owners[name]
    near = get_close_matches(name, owners, n=3, cutoff=0.6)
    meant = f"did you mean {' or '.join(near)}?" if near else "`troop groups` lists those there are"
    raise CliError(Exit.NO_SUCH_UNIT, f"there is no unit or group {name!r} with groups in {basis.where}: {meant}")


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
        "method": outcome.choice.text if hit and outcome.choice else None,
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
    plans: list[UnitDay],
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
    if plans:
        listings.tell(form, columns, plans, {}, drop=_DROPPED)
        reasons = Counter(unit.outcome.reason for unit in plans)
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
    happens = outcome.choice.in_words if outcome.choice else "be terminated"
    would = f"would {happens}" + (", were it not leashed" if outcome.reason == LEASHED else "")
    return f"{instance.instance_id} of {group.name}{zone} {would}"
