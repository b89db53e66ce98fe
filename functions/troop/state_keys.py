"""The keys of the table ``State``: all that share it, each with a word or a prefix of its own."""

from __future__ import annotations

SWITCH = "switch"
"""Whether chaos is leashed or halted, and the reaper off; with UNIT also the subjects of the table ``Changes``."""

REAPER_OFF = "reaper_off"
"""Attribute of the switch."""

IN_FLIGHT = "in-flight"
"""How many terminations are in flight."""

DAY = "day#"
"""And a local day: how many terminations it has had."""

UNIT = "unit#"
"""And a unit: when it was hit last, and by which event it has left chaos."""

UNRECOVERED = "unrecovered"
"""Its attribute ``units`` is the set of all units that have left chaos; an index, so to speak, of the units' own items:
these count.
"""

# What passes: these items expire by themselves.

REQUEST_KEY = "key#"
"""And a digest of a group and an idempotency key: the termination that it has led to."""

RUN_KEY = "run-key#"
"""And a digest of an idempotency key: the run that it stands for."""

REPEAT = "repeat#"
"""And a digest of a request without a key: the key that it was given."""

REPORT_CLAIM = "report-claim#"
"""And a run: when its report was last asked for."""

PRICE = "price#"
"""And a name: a price that was read a while ago."""
