"""Defines the keys of the table ``State``: each kind of item has a separate word or prefix.

It also defines which functions write the items of each kind. IAM allows them no others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

SWITCH = "switch"
"""The state of chaos (leashed, halted) and of the reaper; with UNIT also the subjects of the table ``Changes``."""

REAPER_OFF = "reaper_off"
"""The switch's attribute that turns the reaper off."""

HALT = "halt"
"""The switch's attribute with who has halted, when and why. A change of anything else keeps it."""

HALT_ID = "halt_id"
"""The switch's attribute with the id of a halt of many deployments. Without it, a halt is of this one alone."""

ITSELF = "itself"
"""The key with which a change of the switch records that it ended the halt that the deployment had given itself."""

SCHEDULES_OFF = "schedules_off"
"""The switch's attribute with which schedules start no runs of benchmarks."""

BENCH_SWITCHES = (REAPER_OFF, SCHEDULES_OFF)

EARLIER_TABLES = "earlier-tables"
"""The moment at which no table with data of an earlier deployment was undecided. Before it, the setting
``leashed: false`` has no effect; the switch's attribute ``leashed`` always has.
"""

IN_FLIGHT = "in-flight"
"""The number of terminations in flight."""

DAY = "day#"
"""Key ``day#<day>``: the number of terminations on a local day."""

UNIT = "unit#"
"""Key ``unit#<unit>``: the unit's last termination, and the event because of which it has left chaos."""

UNRECOVERED = "unrecovered"
"""The set of all units that have left chaos, unrecovered or broken, in the attribute ``units``. It is an index of the
units' own items, which are authoritative.
"""

BROKEN = "broken"
"""The units that were broken within the last hour, with the alarms that went off, in ``events``."""

SELF_HALT = "self-halt"
"""The halt that the deployment has given itself. It halts as long as the item exists, and only the API removes it."""

STRAYS = "stray-items"
"""The stray items of ``GroupTags`` that ticks have found."""

RELEASE = "release"
"""The release that the deployment runs, and since when."""

BENCH_SCHEDULES = "bench-schedules#"
"""Key ``bench-schedules#<group>``: the set of all schedules of benchmarks in a schedule group, in ``names``."""

BENCH_SCHEDULE = "bench-schedule#"
"""Key ``bench-schedule#<group>#<name>``: a schedule of a benchmark. An item without ``digest`` is of a removed one,
and expires.
"""

# The items below expire.

SCHEDULED_COST = "scheduled-cost#"
"""Key ``scheduled-cost#<month>``: the worst-case cost of all runs that schedules started in a month."""

SCHEDULED_START = "scheduled-start#"
"""Key ``scheduled-start#<key>``: the record that a scheduled run's cost was counted."""

REQUEST_KEY = "key#"
"""Key ``key#<digest>``: the termination of a request, by the digest of its group and idempotency key."""

RUN_KEY = "run-key#"
"""Key ``run-key#<digest>``: the run of a request, by the digest of its idempotency key."""

REPEAT = "repeat#"
"""Key ``repeat#<digest>``: the key that a request without one received, by the request's digest."""

REPORT_CLAIM = "report-claim#"
"""Key ``report-claim#<run>``: the moment of the last request for a run's report."""

LIVE_CLAIM = "live-claim#"
"""Key ``live-claim#<run>``: the moment of the last claim to merge a run's running summaries."""

HIT = "hit#"
"""Key ``hit#<instance-id>``: the event of the only lasting fault that an instance ever has. An item without
``event_id`` is of a claim that sent nothing.
"""

PERMIT = "permit#"
"""Key ``permit#<digest>``: the units that a caller lets a benchmark hit, by the digest of the caller and the key."""

CHANGE_POINT = "change-point#"
"""Key ``change-point#<digest>``: which changes of a scheduled benchmark were announced, by the digest of its name, its
size and its schedule.
"""

PRICE = "price#"
"""Key ``price#<name>``: a cached price."""

WRITERS: dict[str, tuple[str, ...]] = {
    SWITCH: ("api",),
    EARLIER_TABLES: ("api", "decide"),
    IN_FLIGHT: ("api", "check_recovery", "hear", "inject", "request", "sweep", "terminate"),
    DAY: ("api", "hear", "inject", "request", "sweep", "terminate"),
    UNIT: ("api", "check_recovery", "decide", "hear", "inject", "request", "sweep", "terminate"),
    UNRECOVERED: ("api", "check_recovery", "hear", "inject", "sweep"),
    BROKEN: ("check_recovery", "hear", "inject", "sweep"),
    SELF_HALT: ("check_recovery", "hear", "inject", "sweep"),
    STRAYS: ("decide",),
    RELEASE: ("watchdog",),
    HIT: ("api", "hear", "inject", "request", "sweep", "terminate"),
    REQUEST_KEY: ("api", "request"),
    REPEAT: ("api",),
}
"""Key or prefix -> the functions that write such items. Only the API, which people call, writes the switch."""

DELETED = (BROKEN, SELF_HALT)
"""The items that the API, and no other function, may delete."""

BENCH_WRITERS: dict[str, tuple[str, ...]] = {
    BENCH_SCHEDULES: ("api",),
    BENCH_SCHEDULE: ("api", "start"),
    SCHEDULED_COST: ("start",),
    SCHEDULED_START: ("start",),
    RUN_KEY: ("api", "start"),
    REPORT_CLAIM: ("api",),
    LIVE_CLAIM: ("api", "widgets"),
    PERMIT: ("api",),
    CHANGE_POINT: ("report",),
    PRICE: ("api", "start"),
}
"""The functions that write the items of benchmarks, as in :data:`WRITERS`."""


def written_by(function: str, writers: Mapping[str, Sequence[str]]) -> list[str]:
    """Returns the keys that a function writes, as patterns of IAM: a prefix ends in an asterisk."""
    its = [key for key, functions in writers.items() if function in functions]
    return [f"{key}*" if key.endswith("#") else key for key in its]
