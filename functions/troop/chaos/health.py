"""Health: what was read of a deployment, digested into checks that say what is wrong and what to do about it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from troop import moments
from troop.calendars import Calendar
from troop.chaos.expected_ticks import expected_ticks
from troop.chaos.health_facts import FAILURES_OF, Alarm, Observed, TableBeside, Unread
from troop.concurrency import Concurrency, needed, remedy, shortage
from troop.settings import OLDEST_TICK, Settings
from troop.tags import DATA_TAG

GRACE = OLDEST_TICK + timedelta(minutes=1)
"""A tick is missing only after this: so long may its schedule try to deliver it, and it is precise to a minute."""

LONGEST_GAP = timedelta(days=7)
"""Ticks are counted back no further."""

_HOURS = int(FAILURES_OF.total_seconds() // 3600)
AHEAD_DAYS = 21
"""Within so many days a calendar should have a day that is open to chaos."""

NAMED = 10
"""How many units or schedules a check names."""

_DEPLOY_BACK = "make deploy REPAIR=1; docs/runbook.md#deploying-back"
"""A plain deployment does nothing where the template is the same, whatever was changed by hand."""


class Grade(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes:
        value: what was found; None when it could not be read.
        threshold: what is still, or first, all right.
        detail: a sentence with names and moments.
        todo: what to do about it; "" when nothing is.
    """

    name: str
    status: Grade
    value: int | None
    threshold: int
    detail: str
    todo: str = ""


@dataclass(frozen=True)
class Digest:
    """All checks, in a fixed order."""

    checks: tuple[Check, ...]

    @property
    def status(self) -> Grade:
        """The worst of all."""
        statuses = {check.status for check in self.checks}
        return next((grade for grade in (Grade.FAIL, Grade.WARN) if grade in statuses), Grade.OK)

    @property
    def failing(self) -> int:
        return sum(check.status is Grade.FAIL for check in self.checks)

    def value(self, name: str) -> int | None:
        """What the check of that name has found."""
        return next(check.value for check in self.checks if check.name == name)


def digest(observed: Observed, settings: Settings, tick_minutes: int, now: datetime, others: int) -> Digest:
    """Makes every check; those of alarms, of who is told of them, and of the account only where these were looked at.

    Args:
        observed: as of ``now``.
        settings: of the deployment; each of their calendars has a schedule.
        others: how many schedules there are besides.
    """
    calendars = settings.calendars
    return Digest(
        (
            _schedules(observed, len(calendars) + others),
            _ticks_missing(observed, calendars, tick_minutes, now),
            _ticks_failed(observed),
            _terminations_failed(observed),
            _dead_letters(observed),
            _tables(observed),
            _units(observed),
            _calendars(calendars, now),
            *([] if observed.alarms is None else [_alarms(observed.alarms)]),
            *([] if observed.subscribers is None else [_subscribers(observed.subscribers)]),
            *([] if observed.concurrency is None else [_concurrency(observed.concurrency, settings)]),
            *([] if observed.beside is None else [_beside(observed.beside)]),
        )
    )


SCHEDULES, TICKS_MISSING, TICKS_FAILED = "schedules", "ticks-missing", "ticks-failed"
TERMINATIONS_FAILED = "terminations-failed"
DEAD_LETTERS, TABLES, UNITS_UNRECOVERED, CALENDARS = "dead-letters", "tables", "units-unrecovered", "calendars"
ALARMS, SUBSCRIBERS = "alarms", "subscribers"
CONCURRENCY, EARLIER_TABLES = "lambda-concurrency", "earlier-tables"


def _unread(name: str, threshold: int, unread: Unread) -> Check:
    todo = f"try again in a minute; if it stays so, what may read it may have been changed by hand: {_DEPLOY_BACK}"
    return Check(name, Grade.FAIL, None, threshold, f"could not be read: {unread.why}", todo)


def _schedules(observed: Observed, expected: int) -> Check:
    if isinstance(observed.schedules, Unread):
        return _unread(SCHEDULES, expected, observed.schedules)
    enabled = sum(s.enabled for s in observed.schedules)
    detail = f"{enabled} of {expected} schedules are enabled"
    if disabled := [s.name for s in observed.schedules if not s.enabled]:
        detail += f"; disabled: {_names(disabled)}"
    missing = expected - len(observed.schedules)
    if missing > 0:
        detail += f"; {missing} not there"
    if enabled >= expected:
        return Check(SCHEDULES, Grade.OK, enabled, expected, detail)
    todo = f"{_DEPLOY_BACK}; to stop chaos, halt it: that is on record"
    return Check(SCHEDULES, Grade.FAIL, enabled, expected, detail, todo)


def _ticks_missing(observed: Observed, calendars: Mapping[str, Calendar], tick_minutes: int, now: datetime) -> Check:
    """Ticks that have been due since the last one came. A single one that is left out by and by is made good by the
    next, and tells nothing; that none comes any more does.
    """
    if isinstance(observed.runs, Unread):
        return _unread(TICKS_MISSING, 0, observed.runs)
    if isinstance(observed.schedules, Unread):
        return _unread(TICKS_MISSING, 0, observed.schedules)
    newest = observed.runs.newest
    since = max([now - LONGEST_GAP, *([newest] if newest else []), *(s.changed for s in observed.schedules if s.ticks)])
    missing = expected_ticks(calendars.values(), tick_minutes, since, now - GRACE)
    came = f"the last tick came at {moments.iso(newest)}" if newest else "no tick has come yet"
    if not missing:
        return Check(TICKS_MISSING, Grade.OK, 0, 0, f"{came}; none has been due since")
    detail = f"{came}; {len(missing)} have been due since {moments.iso(missing[0][0])}"
    todo = "look at the check of the schedules and at the dead letters; docs/runbook.md#ticks-missing"
    return Check(TICKS_MISSING, Grade.FAIL, len(missing), 0, detail, todo)


def _ticks_failed(observed: Observed) -> Check:
    if isinstance(observed.runs, Unread):
        return _unread(TICKS_FAILED, 0, observed.runs)
    failed, succeeded = observed.runs.failed, observed.runs.newest_succeeded
    if not failed:
        return Check(TICKS_FAILED, Grade.OK, 0, 0, f"no tick has failed in the last {_HOURS} hours")
    detail = f"{len(failed)} failed in the last {_HOURS} hours, the last at {moments.iso(max(failed))}"
    todo = "read the cause of the failed execution; docs/runbook.md#ticks-failed"
    if succeeded and succeeded > max(failed):
        return Check(TICKS_FAILED, Grade.WARN, len(failed), 0, f"{detail}; later ones succeeded", todo)
    return Check(TICKS_FAILED, Grade.FAIL, len(failed), 0, f"{detail}; none has succeeded since", todo)


def _terminations_failed(observed: Observed) -> Check:
    """A tick tolerates what fails for one unit, so this is not among the failed ticks."""
    children = observed.children
    if isinstance(children, Unread):
        return _unread(TERMINATIONS_FAILED, 0, children)
    failed, last, succeeded = children.failed, children.last_failed, children.last_succeeded
    if not failed or last is None:
        detail = f"no termination, and no watch over a recovery, has failed in the last {_HOURS} hours"
        return Check(TERMINATIONS_FAILED, Grade.OK, 0, 0, detail)
    detail = f"{failed} failed in the last {_HOURS} hours, the last about {moments.iso(last)}"
    todo = "read the log of the function that terminates or watches; docs/runbook.md#terminations-failed"
    if succeeded and succeeded > last:
        return Check(TERMINATIONS_FAILED, Grade.WARN, failed, 0, f"{detail}; later ones succeeded", todo)
    return Check(TERMINATIONS_FAILED, Grade.FAIL, failed, 0, f"{detail}; none has succeeded since", todo)


def _dead_letters(observed: Observed) -> Check:
    count = observed.dead_letters
    if isinstance(count, Unread):
        return _unread(DEAD_LETTERS, 0, count)
    if not count:
        return Check(DEAD_LETTERS, Grade.OK, 0, 0, "everything that was scheduled was delivered")
    todo = (
        "read the messages' attributes ERROR_CODE and ERROR_MESSAGE, and mend the cause; each is dropped half an hour "
        "after it came; "
        "docs/runbook.md#dead-letters"
    )
    return Check(DEAD_LETTERS, Grade.FAIL, count, 0, f"{count} could not be delivered", todo)


_USABLE = frozenset({"ACTIVE", "UPDATING"})


def _tables(observed: Observed) -> Check:
    tables = observed.tables
    if isinstance(tables, Unread):
        return _unread(TABLES, 0, tables)
    other = {name: status for name, status in tables.items() if status != "ACTIVE"}
    active = len(tables) - len(other)
    if not other:
        return Check(TABLES, Grade.OK, active, len(tables), f"all {active} tables are ACTIVE")
    detail = "; ".join(f"{name} is {status}" for name, status in sorted(other.items()))
    if set(other.values()) <= _USABLE:
        return Check(TABLES, Grade.WARN, active, len(tables), detail, "wait: a table that is updated can be used")
    todo = "restore what is gone from its point-in-time backup, and deploy again"
    return Check(TABLES, Grade.FAIL, active, len(tables), detail, todo)


def _units(observed: Observed) -> Check:
    units = observed.unrecovered
    if isinstance(units, Unread):
        return _unread(UNITS_UNRECOVERED, 0, units)
    if not units:
        return Check(UNITS_UNRECOVERED, Grade.OK, 0, 0, "every unit recovered, or was put back")
    todo = "mend the unit, then put it back into chaos; docs/runbook.md#unit-unrecovered"
    return Check(UNITS_UNRECOVERED, Grade.FAIL, len(units), 0, f"out of chaos: {_names(sorted(units))}", todo)


def _calendars(calendars: Mapping[str, Calendar], now: datetime) -> Check:
    closed = {name: why for name, calendar in calendars.items() if (why := _closed_ahead(calendar, now))}
    opened = len(calendars) - len(closed)
    if not closed:
        detail = f"each of {opened} has an open day within {AHEAD_DAYS} days"
        return Check(CALENDARS, Grade.OK, opened, len(calendars), detail)
    detail = f"no open day within {AHEAD_DAYS} days: " + "; ".join(f"{n} ({w})" for n, (_, w) in closed.items())
    grade = max((grade for grade, _ in closed.values()), key=list(Grade).index)
    todo = "if that is not meant, mend the setting troop:calendars, and deploy again"
    return Check(CALENDARS, grade, opened, len(calendars), detail, todo)


def _closed_ahead(calendar: Calendar, now: datetime) -> tuple[Grade, str] | None:
    """Why nothing will happen on a calendar for weeks: somebody froze it (which is meant), or it has no such days."""
    today = calendar.local(now).date()
    days = [today + timedelta(days=n) for n in range(AHEAD_DAYS)]
    business = [day for day in days if calendar.is_business_day(day)]
    if not business:
        return Grade.FAIL, "not one is a business day"
    if any(calendar.frozen(day) is None for day in business):
        return None
    freeze = calendar.frozen(business[0])
    return Grade.WARN, f"frozen: {freeze.detail if freeze else ''}"


def _alarms(alarms: tuple[Alarm, ...] | Unread) -> Check:
    """Those to act on fail it; the others warn."""
    if isinstance(alarms, Unread):
        return _unread(ALARMS, 0, alarms)
    if not alarms:
        return Check(ALARMS, Grade.OK, 0, 0, "no alarm is on")
    first = sorted(alarms, key=lambda alarm: not alarm.act_now)
    now, soon = ([alarm.name for alarm in alarms if alarm.act_now is which] for which in (True, False))
    sentences = [f"act now: {_names(now)}"] if now else []
    sentences += [f"warning: {_names(soon)}"] if soon else []
    todo = _names([*dict.fromkeys(alarm.todo for alarm in first if alarm.todo)])
    return Check(ALARMS, Grade.FAIL if now else Grade.WARN, len(alarms), 0, "; ".join(sentences), todo)


def _subscribers(subscribers: int | Unread) -> Check:
    if isinstance(subscribers, Unread):
        return _unread(SUBSCRIBERS, 1, subscribers)
    if subscribers:
        detail = f"{subscribers} are told when somebody has to act"
        return Check(SUBSCRIBERS, Grade.OK, subscribers, 1, detail)
    detail = "nobody is told when somebody has to act"
    todo = "subscribe to the stack's output ActNowTopicArn, and confirm what comes by mail; docs/runbook.md#who-is-told"
    return Check(SUBSCRIBERS, Grade.WARN, 0, 1, detail, todo)


def _concurrency(concurrency: Concurrency | Unread, settings: Settings) -> Check:
    required = sum(needed(settings).values())
    if isinstance(concurrency, Unread):
        return _unread(CONCURRENCY, required, concurrency)
    if why := shortage(concurrency, settings):
        return Check(CONCURRENCY, Grade.WARN, concurrency.unreserved, required, why, remedy(concurrency, settings))
    detail = f"Lambda runs {concurrency.unreserved} functions at a time, beside what others reserve"
    return Check(CONCURRENCY, Grade.OK, concurrency.unreserved, required, detail)


def _beside(tables: tuple[TableBeside, ...] | Unread) -> Check:
    """Such as after a plain `cdk deploy`, which makes empty tables whatever an earlier deployment has left."""
    if isinstance(tables, Unread):
        return _unread(EARLIER_TABLES, 0, tables)
    if not tables:
        return Check(EARLIER_TABLES, Grade.OK, 0, 0, "no earlier deployment of this name has left tables")
    each = [f"{t.name} ({t.part}, made {t.created:%Y-%m-%d %H:%M}, about {t.items} items)" for t in tables]
    detail = f"tables of an earlier deployment of this name exist beside these: {_names(each)}"
    ours = [table for table in tables if table.stack]
    # Tables of a stack that has written nothing are those of a deployment that failed. The count is some hours late.
    written = {table.stack for table in ours if table.items} or {table.stack for table in ours}
    newest = {table.part: table.name for table in reversed(ours) if table.stack in written}
    todo = "nothing in them counts here, neither opt-outs nor the switch. "
    if newest:
        names = ",".join(sorted(newest.values()))
        todo += f"To take them over: make destroy, which keeps all tables, then make deploy ADOPT={names}. "
    todo += (
        f"If nobody needs them, delete them; to keep them aside, remove their tag {DATA_TAG}; "
        "docs/deploying.md#tables-of-an-earlier-deployment"
    )
    if strange := [table.name for table in tables if not table.stack]:
        todo = f"CloudFormation did not make {_names(strange)} for a stack of this name: do not take it over. {todo}"
    return Check(EARLIER_TABLES, Grade.WARN, len(tables), 0, detail, todo)


def _names(names: list[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")
