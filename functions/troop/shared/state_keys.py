"""Defines the keys of the table ``State``: each kind of item has a separate word or prefix.

It also defines which functions write the items of each kind. IAM allows them no others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

SWITCH = "switch"
"""The state of chaos (leashed, halted) and of the reaper; with UNIT also the subjects of the table ``Changes``."""

REAPER_OFF = "reaper_off"
"""Attribute of the switch."""

SCHEDULES_OFF = "schedules_off"
"""Attribute of the switch: schedules start no runs of benchmarks."""

BENCH_SWITCHES = (REAPER_OFF, SCHEDULES_OFF)

EARLIER_TABLES = "earlier-tables"
"""When no table with data of an earlier deployment was undecided. Until then, the setting ``leashed: false`` has no
effect; the switch's attribute ``leashed`` always has.
"""

IN_FLIGHT = "in-flight"
"""How many terminations are in flight."""

DAY = "day#"
"""With a local day: the number of its terminations."""

UNIT = "unit#"
"""With a unit: its last termination, and the event because of which it has left chaos."""

UNRECOVERED = "unrecovered"
"""Its attribute ``units`` is the set of all units that have left chaos. It is an index of the units' own items, which
are authoritative.
"""

STRAYS = "stray-items"
"""What ticks remember of items of ``GroupTags`` whose key names no unit."""

BENCH_SCHEDULES = "bench-schedules#"
"""With the name of a group: its attribute ``names`` is the set of all schedules of benchmarks."""

BENCH_SCHEDULE = "bench-schedule#"
"""With group and name: a schedule of a benchmark; without the attribute ``digest`` it was removed, and expires."""

# The items below expire.

SCHEDULED_COST = "scheduled-cost#"
"""With a month: the worst cases of all runs that schedules have started in it."""

SCHEDULED_START = "scheduled-start#"
"""With a key of a scheduled run: that it was counted."""

REQUEST_KEY = "key#"
"""With a digest of a group and an idempotency key: its termination."""

RUN_KEY = "run-key#"
"""With a digest of an idempotency key: its run."""

REPEAT = "repeat#"
"""With a digest of a request without a key: the key that it received."""

REPORT_CLAIM = "report-claim#"
"""With a run: when its report was last requested."""

LIVE_CLAIM = "live-claim#"
"""With a run: when a merge of its running summaries was last claimed."""

PRICE = "price#"
"""With a name: a cached price."""

WRITERS: dict[str, tuple[str, ...]] = {
    SWITCH: ("api",),
    EARLIER_TABLES: ("api", "decide"),
    IN_FLIGHT: ("api", "check_recovery", "sweep", "terminate"),
    DAY: ("api", "sweep", "terminate"),
    UNIT: ("api", "check_recovery", "decide", "sweep", "terminate"),
    UNRECOVERED: ("api", "check_recovery", "sweep"),
    STRAYS: ("decide",),
    REQUEST_KEY: ("api",),
    REPEAT: ("api",),
}
"""Key or prefix -> the functions that write such items. Only the API, which people call, writes the switch."""

BENCH_WRITERS: dict[str, tuple[str, ...]] = {
    BENCH_SCHEDULES: ("api",),
    BENCH_SCHEDULE: ("api", "start"),
    SCHEDULED_COST: ("start",),
    SCHEDULED_START: ("start",),
    RUN_KEY: ("api", "start"),
    REPORT_CLAIM: ("api",),
    LIVE_CLAIM: ("api", "widgets"),
    PRICE: ("api", "start"),
}
"""The same for the items of benchmarks."""


def written_by(function: str, writers: Mapping[str, Sequence[str]]) -> list[str]:
    """Returns the keys that a function writes, as patterns of IAM: a prefix ends in an asterisk."""
    its = [key for key, functions in writers.items() if function in functions]
    return [f"{key}*" if key.endswith("#") else key for key in its]
