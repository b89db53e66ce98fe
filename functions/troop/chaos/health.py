"""Evaluates what was read of a deployment: checks with a status, a sentence, and what to do. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from troop.chaos import earlier_tables
from troop.chaos.change_calendars import ChangePeriod
from troop.chaos.cures import Cures
from troop.chaos.earlier_tables import EarlierTable
from troop.chaos.expected_ticks import expected_ticks
from troop.chaos.health_facts import FAILURES_OF, Alarm, HealthFacts, Schedule, Unread
from troop.chaos.strays import StrayRecord
from troop.chaos.tick_times import TickSpan, shift
from troop.shared import moments, zones
from troop.shared.calendars import Calendar
from troop.shared.concurrency import Concurrency, needed, quota_request, remedy, shortage
from troop.shared.release import RunningRelease
from troop.shared.settings import OLDEST_TICK, Settings

GRACE = OLDEST_TICK + timedelta(minutes=1)
"""The time after which a tick counts as missing: its schedule retries for so long, and is precise to a minute."""

LONGEST_GAP = timedelta(days=7)
"""The longest period in which missing ticks are counted."""

_HOURS = int(FAILURES_OF.total_seconds() // 3600)
AHEAD_DAYS = 21
"""The days within which a calendar should have a day that is open to chaos."""

_BACK = "deploying-back"
"""The runbook's entry about undoing manual changes."""

NAMED = 10
"""The most units or schedules that a check names."""


class Grade(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Check:
    """The result of one check.

    Attributes:
        value: the value found; None if it could not be read.
        threshold: the last, or the first, acceptable value.
        detail: a sentence with names and moments.
        todo: what to do about it; "" for nothing.
        commands: commands that help with it, which a person can paste.
        runbook: the address of the runbook's entry about it; "" if there is none.
    """

    name: str
    status: Grade
    value: int | None
    threshold: int
    detail: str
    todo: str = ""
    commands: tuple[str, ...] = ()
    runbook: str = ""


@dataclass(frozen=True)
class Digest:
    """All checks, in a fixed order.

    Attributes:
        last_tick: when the last tick came; None if none has come, or if this could not be read.
        next_tick: when the next tick is due; None if no window opens within :data:`AHEAD_DAYS`.
        release: the release that runs; None if it is not recorded yet, or could not be read.
    """

    checks: tuple[Check, ...]
    last_tick: datetime | None = None
    next_tick: datetime | None = None
    release: RunningRelease | None = None

    @property
    def status(self) -> Grade:
        """The worst status of all checks."""
        statuses = {check.status for check in self.checks}
        return next((grade for grade in (Grade.FAIL, Grade.WARN) if grade in statuses), Grade.OK)

    @property
    def time_zones(self) -> str:
        """The release of the IANA time zones by which calendars are judged."""
        return zones.VERSION

    @property
    def failing(self) -> int:
        return sum(check.status is Grade.FAIL for check in self.checks)

    def value(self, name: str) -> int | None:
        """Returns the value of the check of that name."""
        return next(check.value for check in self.checks if check.name == name)


def digest(
    observed: HealthFacts, settings: Settings, tick_minutes: int, now: datetime, others: int, cures: Cures
) -> Digest:
    """Runs every check; those of alarms, subscribers and the account only if these were read.

    Args:
        observed: the facts as of ``now``.
        settings: the deployment's settings; each of their calendars has a schedule.
        others: the number of other schedules.
        cures: makes the commands that checks name.
    """
    calendars = settings.calendars
    checks = (
        _schedules(observed, len(calendars) + others, cures),
        _ticks_missing(observed, calendars, tick_minutes, now, cures),
        _ticks_failed(observed, cures),
        _terminations_failed(observed, cures),
        _dead_letters(observed, cures),
        _tables(observed, cures),
        _unrecovered(observed, cures),
        _broken(observed, cures),
        _halted_itself(observed, cures),
        _calendars(calendars, now, cures),
        *([] if observed.alarms is None else [_alarms(observed.alarms, cures)]),
        *([] if observed.subscribers is None else [_subscribers(observed.subscribers, cures)]),
        *([] if observed.strays is None else [_strays(observed.strays, cures)]),
        *([] if observed.concurrency is None else [_concurrency(observed.concurrency, settings, cures)]),
        *([] if observed.earlier is None else [_earlier_tables(observed.earlier, cures)]),
        *([_change_calendars(observed.changes, cures)] if observed.changes else []),
        *([] if observed.came is None else [_time_zones(observed.came, observed.schedules, calendars, cures)]),
    )
    last = None if isinstance(observed.runs, Unread) else observed.runs.newest
    release = None if isinstance(observed.release, Unread) else observed.release
    return Digest(checks, last, _next_tick(calendars, tick_minutes, now), release)


def _next_tick(calendars: Mapping[str, Calendar], tick_minutes: int, now: datetime) -> datetime | None:
    for days in (1, 4, AHEAD_DAYS):
        if ticks := expected_ticks(calendars.values(), tick_minutes, now, now + timedelta(days=days)):
            return ticks[0][0]
    return None


SCHEDULES, TICKS_MISSING, TICKS_FAILED = "schedules", "ticks-missing", "ticks-failed"
TERMINATIONS_FAILED = "terminations-failed"
DEAD_LETTERS, TABLES, UNITS_UNRECOVERED, CALENDARS = "dead-letters", "tables", "units-unrecovered", "calendars"
UNITS_BROKEN, HALTED_ITSELF = "units-broken", "halted-itself"
STRAY_ITEMS = "stray-items"
ALARMS, SUBSCRIBERS = "alarms", "subscribers"
CONCURRENCY, EARLIER_TABLES = "lambda-concurrency", "earlier-tables"
CHANGE_CALENDARS, TIME_ZONES = "change-calendars", "time-zones"


def _unread(name: str, threshold: int, unread: Unread, cures: Cures) -> Check:
    todo = "try again in a minute; if it persists, somebody may have changed the permissions by hand: deploy back"
    detail, entry = f"could not be read: {unread.why}", cures.entry(_BACK)
    return Check(name, Grade.FAIL, None, threshold, detail, todo, (cures.deploy_back,), entry)


def _schedules(observed: HealthFacts, expected: int, cures: Cures) -> Check:
    if isinstance(observed.schedules, Unread):
        return _unread(SCHEDULES, expected, observed.schedules, cures)
    enabled = sum(s.enabled for s in observed.schedules)
    detail = f"{enabled} of {expected} schedules are enabled"
    if disabled := [s.name for s in observed.schedules if not s.enabled]:
        detail += f"; disabled: {_names(disabled)}"
    missing = expected - len(observed.schedules)
    if missing > 0:
        detail += f"; {missing} missing"
    if enabled >= expected:
        return Check(SCHEDULES, Grade.OK, enabled, expected, detail)
    todo = "deploy back; to stop chaos, use troop halt, which is recorded"
    commands = (cures.schedules, cures.deploy_back)
    return Check(SCHEDULES, Grade.FAIL, enabled, expected, detail, todo, commands, cures.entry(_BACK))


def _ticks_missing(
    observed: HealthFacts, calendars: Mapping[str, Calendar], tick_minutes: int, now: datetime, cures: Cures
) -> Check:
    """Counts the ticks that were due since the last one. A single missing tick does no harm, as the next one does its
    work; the check fails only while none arrives.
    """
    if isinstance(observed.runs, Unread):
        return _unread(TICKS_MISSING, 0, observed.runs, cures)
    if isinstance(observed.schedules, Unread):
        return _unread(TICKS_MISSING, 0, observed.schedules, cures)
    newest = observed.runs.newest
    since = max([now - LONGEST_GAP, *([newest] if newest else []), *(s.changed for s in observed.schedules if s.ticks)])
    missing = expected_ticks(calendars.values(), tick_minutes, since, now - GRACE)
    came = f"the last tick came at {moments.second(newest)}" if newest else "no tick has come yet"
    if not missing:
        return Check(TICKS_MISSING, Grade.OK, 0, 0, f"{came}; none has been due since")
    detail = f"{came}; {len(missing)} have been due since {moments.second(missing[0][0])}"
    todo = "find a disabled schedule, or why the workflow could not start, and deploy back"
    commands = (cures.schedules, cures.dead_letters, cures.deploy_back)
    return Check(TICKS_MISSING, Grade.FAIL, len(missing), 0, detail, todo, commands, cures.entry(TICKS_MISSING))


def _ticks_failed(observed: HealthFacts, cures: Cures) -> Check:
    if isinstance(observed.runs, Unread):
        return _unread(TICKS_FAILED, 0, observed.runs, cures)
    failed, succeeded = observed.runs.failed, observed.runs.newest_succeeded
    if not failed:
        return Check(TICKS_FAILED, Grade.OK, 0, 0, f"no tick has failed in the last {_HOURS} hours")
    detail = f"{len(failed)} failed in the last {_HOURS} hours, the last at {moments.second(max(failed))}"
    grade, since = _since(succeeded, max(failed))
    todo, commands = "read the cause of the failed execution", (cures.failed_ticks,)
    return Check(TICKS_FAILED, grade, len(failed), 0, f"{detail}; {since}", todo, commands, cures.entry(TICKS_FAILED))


def _since(succeeded: datetime | None, failed: datetime) -> tuple[Grade, str]:
    """Returns the grade of a failure, and what has happened since."""
    if succeeded and succeeded > failed:
        return Grade.WARN, "later ones succeeded"
    return Grade.FAIL, "none has succeeded since"


def _terminations_failed(observed: HealthFacts, cures: Cures) -> Check:
    """Checks the child executions. The failed ticks do not include these, because a tick tolerates the failure of a
    unit.
    """
    children = observed.children
    if isinstance(children, Unread):
        return _unread(TERMINATIONS_FAILED, 0, children, cures)
    failed, last, succeeded = children.failed, children.last_failed, children.last_succeeded
    if not failed or last is None:
        detail = f"no termination and no recovery check has failed in the last {_HOURS} hours"
        return Check(TERMINATIONS_FAILED, Grade.OK, 0, 0, detail)
    detail = f"{failed} failed in the last {_HOURS} hours, the last about {moments.second(last)}"
    grade, since = _since(succeeded, last)
    todo = "read the errors of the functions Terminate and CheckRecovery, and see what became of the terminations"
    commands = (cures.errors("Terminate"), cures.errors("CheckRecovery"), cures.troop("events", "--since", "1d"))
    entry = cures.entry(TERMINATIONS_FAILED)
    return Check(TERMINATIONS_FAILED, grade, failed, 0, f"{detail}; {since}", todo, commands, entry)


def _dead_letters(observed: HealthFacts, cures: Cures) -> Check:
    count = observed.dead_letters
    if isinstance(count, Unread):
        return _unread(DEAD_LETTERS, 0, count, cures)
    if not count:
        return Check(DEAD_LETTERS, Grade.OK, 0, 0, "all scheduled events were delivered")
    todo = (
        "read the messages' attributes ERROR_CODE and ERROR_MESSAGE, and fix the cause; "
        "Troop drops each message after half an hour"
    )
    detail, commands = f"{count} could not be delivered", (cures.dead_letters, cures.deploy_back)
    return Check(DEAD_LETTERS, Grade.FAIL, count, 0, detail, todo, commands, cures.entry(DEAD_LETTERS))


_USABLE = frozenset({"ACTIVE", "UPDATING"})


def _tables(observed: HealthFacts, cures: Cures) -> Check:
    tables = observed.tables
    if isinstance(tables, Unread):
        return _unread(TABLES, 0, tables, cures)
    other = {name: status for name, status in tables.items() if status != "ACTIVE"}
    active = len(tables) - len(other)
    if not other:
        return Check(TABLES, Grade.OK, active, len(tables), f"all {active} tables are ACTIVE")
    detail = "; ".join(f"{name} is {status}" for name, status in sorted(other.items()))
    if set(other.values()) <= _USABLE:
        return Check(TABLES, Grade.WARN, active, len(tables), detail, "wait: a table can be used during an update")
    todo = "restore missing tables from their backups, and deploy"
    commands = (*(cures.backups(name) for name in sorted(other) if other[name] not in _USABLE), cures.deploy())
    return Check(TABLES, Grade.FAIL, active, len(tables), detail, todo, commands, cures.entry(_BACK))


def _unrecovered(observed: HealthFacts, cures: Cures) -> Check:
    left = observed.left
    if isinstance(left, Unread):
        return _unread(UNITS_UNRECOVERED, 0, left, cures)
    units = sorted(unit for unit, reason in left.items() if reason != "broken")
    if not units:
        return Check(UNITS_UNRECOVERED, Grade.OK, 0, 0, "every unit has recovered, or was returned to chaos")
    todo = "find out why, and fix the unit; then return it to chaos"
    commands = (cures.troop("events", "--status", "UNRECOVERED"), *_returns(units, cures))
    detail, entry = f"out of chaos: {_names(units)}", cures.entry("unit-unrecovered")
    return Check(UNITS_UNRECOVERED, Grade.FAIL, len(units), 0, detail, todo, commands, entry)


def _broken(observed: HealthFacts, cures: Cures) -> Check:
    left = observed.left
    if isinstance(left, Unread):
        return _unread(UNITS_BROKEN, 0, left, cures)
    units = sorted(unit for unit, reason in left.items() if reason == "broken")
    if not units:
        return Check(UNITS_BROKEN, Grade.OK, 0, 0, "no unit is out of chaos because its hypothesis did not hold")
    todo = "find out why the alarm went off, or the recovery took so long; then return the unit to chaos"
    commands = (cures.troop("events", "--verdict", "BROKEN"), *_returns(units, cures))
    detail, entry = f"out of chaos: {_names(units)}", cures.entry("unit-broken")
    return Check(UNITS_BROKEN, Grade.FAIL, len(units), 0, detail, todo, commands, entry)


def _returns(units: Sequence[str], cures: Cures) -> Iterator[str]:
    return (cures.troop("opt-in", unit) for unit in units[:NAMED])


def _halted_itself(observed: HealthFacts, cures: Cures) -> Check:
    halt = observed.self_halt
    if isinstance(halt, Unread):
        return _unread(HALTED_ITSELF, 0, halt, cures)
    if halt is None:
        return Check(HALTED_ITSELF, Grade.OK, 0, 0, "the deployment has not halted itself")
    todo = "look at the terminations that led to it, and resume when their causes are known"
    commands = (*(cures.troop("events", event) for event in halt.events[:NAMED]), cures.troop("resume"))
    detail = f"since {moments.second(halt.at)}: {halt.why}"
    return Check(HALTED_ITSELF, Grade.FAIL, 1, 0, detail, todo, commands, cures.entry(HALTED_ITSELF))


def _strays(strays: StrayRecord | Unread, cures: Cures) -> Check:
    """Warns of policies without a unit: their owners believe that they are in force."""
    if isinstance(strays, Unread):
        return _unread(STRAY_ITEMS, 0, strays, cures)
    if not strays.count:
        return Check(STRAY_ITEMS, Grade.OK, 0, 0, "the key of every item of GroupTags names a unit")
    named = [stray.in_words for stray in strays.named]
    detail = f"no unit has the name {_names(named, strays.count)}"
    todo = "if a unit is meant, set its policy with troop opt-out or troop set; then delete the item"
    meant = dict.fromkeys(stray.nearest for stray in strays.named if stray.nearest)
    commands = (
        *(cures.troop("group", unit) for unit in meant),
        *(cures.delete_item(stray.key) for stray in strays.named[:NAMED]),
    )
    entry = "docs/guides/chaos.md#stray-items"
    return Check(STRAY_ITEMS, Grade.WARN, strays.count, 0, detail, todo, commands, entry)


def _calendars(calendars: Mapping[str, Calendar], now: datetime, cures: Cures) -> Check:
    closed = {name: why for name, calendar in calendars.items() if (why := _closed_ahead(calendar, now))}
    opened = len(calendars) - len(closed)
    if not closed:
        detail = f"each of {opened} has an open day within {AHEAD_DAYS} days"
        return Check(CALENDARS, Grade.OK, opened, len(calendars), detail)
    detail = f"no open day within {AHEAD_DAYS} days: " + "; ".join(f"{n} ({w})" for n, (_, w) in closed.items())
    grade = max((grade for grade, _ in closed.values()), key=list(Grade).index)
    todo = "if this is not intended, correct the setting troop:calendars, and deploy"
    return Check(CALENDARS, grade, opened, len(calendars), detail, todo, (cures.deploy(),))


def _closed_ahead(calendar: Calendar, now: datetime) -> tuple[Grade, str] | None:
    """Returns why a calendar has no open day for weeks: a freeze, which is intended, or no business days."""
    today = calendar.local(now).date()
    days = [today + timedelta(days=n) for n in range(AHEAD_DAYS)]
    business = [day for day in days if calendar.is_business_day(day)]
    if not business:
        return Grade.FAIL, "none is a business day"
    if any(calendar.frozen(day) is None for day in business):
        return None
    freeze = calendar.frozen(business[0])
    return Grade.WARN, f"frozen: {freeze.detail if freeze else ''}"


def _alarms(alarms: tuple[Alarm, ...] | Unread, cures: Cures) -> Check:
    """Fails for alarms of the class "act now", and warns for the others."""
    if isinstance(alarms, Unread):
        return _unread(ALARMS, 0, alarms, cures)
    if not alarms:
        return Check(ALARMS, Grade.OK, 0, 0, "no alarm is on")
    first = sorted(alarms, key=lambda alarm: not alarm.act_now)
    now, soon = ([alarm.name for alarm in alarms if alarm.act_now is which] for which in (True, False))
    sentences = [f"act now: {_names(now)}"] if now else []
    sentences += [f"warning: {_names(soon)}"] if soon else []
    entries = [*dict.fromkeys(alarm.todo for alarm in first if alarm.todo)]
    todo = f"follow {_names(entries)}" if entries else "read why they are on"
    commands = (cures.alarms([alarm.name for alarm in first[:NAMED]]),)
    grade, entry = Grade.FAIL if now else Grade.WARN, cures.entry("alarms")
    return Check(ALARMS, grade, len(alarms), 0, "; ".join(sentences), todo, commands, entry)


def _subscribers(subscribers: int | Unread, cures: Cures) -> Check:
    if isinstance(subscribers, Unread):
        return _unread(SUBSCRIBERS, 1, subscribers, cures)
    if subscribers:
        detail = f"subscribers of act-now alarms: {subscribers}"
        return Check(SUBSCRIBERS, Grade.OK, subscribers, 1, detail)
    detail = "act-now alarms have no subscriber"
    todo = "subscribe the people on call; each confirms by the mail that AWS sends"
    entry = cures.entry("who-receives-alarms")
    return Check(SUBSCRIBERS, Grade.WARN, 0, 1, detail, todo, (cures.subscribe,), entry)


def _concurrency(concurrency: Concurrency | Unread, settings: Settings, cures: Cures) -> Check:
    required = sum(needed(settings).values())
    if isinstance(concurrency, Unread):
        return _unread(CONCURRENCY, required, concurrency, cures)
    if why := shortage(concurrency, settings):
        todo, commands = remedy(concurrency, settings), (quota_request(concurrency, settings),)
        entry = cures.entry("throttled")
        return Check(CONCURRENCY, Grade.WARN, concurrency.unreserved, required, why, todo, commands, entry)
    detail = f"Lambda runs {concurrency.unreserved} functions at a time, besides reserved ones"
    return Check(CONCURRENCY, Grade.OK, concurrency.unreserved, required, detail)


def _earlier_tables(tables: tuple[EarlierTable, ...] | Unread, cures: Cures) -> Check:
    """Warns of tables of earlier deployments, for example after a plain `cdk deploy`, which always creates empty
    tables.
    """
    if isinstance(tables, Unread):
        return _unread(EARLIER_TABLES, 0, tables, cures)
    if not tables:
        return Check(EARLIER_TABLES, Grade.OK, 0, 0, "no table of an earlier deployment of this name is undecided")
    detail = f"this deployment does not use the tables of an earlier one of this name: {earlier_tables.listed(tables)}"
    if full := earlier_tables.with_data(tables):
        todo = (
            "their opt-outs and their switch have no effect here, and a leashed deployment stays leashed until you "
            f"decide about them. {earlier_tables.ways_out(full)}"
        )
        commands: tuple[str, ...] = tuple(earlier_tables.declining(full))
    else:
        todo, commands = f"delete them: they are empty; {earlier_tables.DOCUMENT}", ()
    entry = cures.entry(EARLIER_TABLES)
    return Check(EARLIER_TABLES, Grade.WARN, len(tables), 0, detail, todo, commands, entry)


def _change_calendars(changes: tuple[ChangePeriod, ...], cures: Cures) -> Check:
    """Warns of SSM Change Calendars that cannot be read: they keep their windows closed."""
    readable = sum(not period.unread for period in changes)
    detail = "; ".join(f"{period.document} {period.in_words()}" for period in changes[:NAMED])
    if readable == len(changes):
        return Check(CHANGE_CALENDARS, Grade.OK, readable, len(changes), detail)
    todo = (
        "their windows stay closed: create or share the Change Calendar, or correct change_calendar in "
        "troop:calendars and deploy again"
    )
    unread = [period.document for period in changes if period.unread][:NAMED]
    commands = (
        *(cures.aws("ssm", "get-calendar-state", "--calendar-names", document) for document in unread),
        cures.deploy(),
    )
    entry = cures.entry("change-calendar-unread")
    return Check(CHANGE_CALENDARS, Grade.WARN, readable, len(changes), detail, todo, commands, entry)


def _time_zones(
    came: Mapping[str, tuple[TickSpan, tuple[datetime, ...]]] | Unread,
    schedules: tuple[Schedule, ...] | Unread,
    calendars: Mapping[str, Calendar],
    cures: Cures,
) -> Check:
    """Warns if the ticks of a calendar's last business day came at the hours of another time zone."""
    if isinstance(came, Unread):
        return _unread(TIME_ZONES, 0, came, cures)
    if isinstance(schedules, Unread):
        return _unread(TIME_ZONES, 0, schedules, cures)
    changed = max((s.changed for s in schedules if s.ticks), default=None)
    judged = {name: (span, ticks) for name, (span, ticks) in came.items() if changed and changed < span.first and ticks}
    wrong = [_shifted(calendars[name], span, ticks) for name, (span, ticks) in judged.items() if shift(span, ticks)]
    here = f"Troop has the time zones {zones.VERSION}"
    if not wrong:
        detail = f"{here}; calendars whose ticks of the last business day came in their hours: {len(judged)}"
        return Check(TIME_ZONES, Grade.OK, 0, 0, detail)
    detail = f"{here}, EventBridge Scheduler has others: {'; '.join(wrong[:NAMED])}"
    todo = (
        "if Troop's are the older ones, deploy a version with newer ones; "
        "otherwise wait for AWS: meanwhile ticks miss a part of the window"
    )
    entry = cures.entry("ticks-at-the-wrong-hour")
    return Check(TIME_ZONES, Grade.WARN, len(wrong), 0, detail, todo, (cures.deploy(),), entry)


def _shifted(calendar: Calendar, span: TickSpan, came: tuple[datetime, ...]) -> str:
    late = shift(span, came)
    minutes, which = round(abs(late) / timedelta(minutes=5)) * 5, "early" if late < timedelta() else "late"
    first, last, due, end = (calendar.local(at) for at in (min(came), max(came), span.first, span.last))
    return (
        f"on {span.day}, ticks of calendar {calendar.name} came {minutes} minutes {which}, "
        f"from {first:%H:%M} to {last:%H:%M} instead of from {due:%H:%M} to {end:%H:%M} {calendar.time_zone}"
    )


def _names(names: list[str], count: int = 0) -> str:
    """Names the first; ``count``: of all, if ``names`` are not all."""
    more = max(count, len(names)) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")
