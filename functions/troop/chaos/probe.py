"""Defines what the probe reads on an instance. Pure; the script is infra/probe.sh, a document of the stack.

The script changes nothing. It writes one line of JSON with the fields of :class:`Reading`, and the token that the
request had.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from troop.shared.codec import stored

BUDGET = timedelta(seconds=60)
"""The time that a probe has, from its request to its answer. Without an answer by then it has none."""

READERS = frozenset({"iptables", "tc"})
"""The programs that show a trace. Where one does not exist, AWS's documents cannot have left that trace: it is 0."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a probe has read. None: it could not be read.

    Attributes:
        boot: the kernel's boot id.
        qdiscs: tc's queueing disciplines of the kinds that AWS's documents add: netem, ingress, and prio.
        drops: iptables' rules that drop packets, of both directions.
        stress: processes of stress-ng.
        rollbacks: flag files and rollback scripts of AWS's documents in /var/lib/amazon/ssm.
        hosts: lines in /etc/hosts that AWS's documents mark for removal.
        used: how full the root volume is, in percent.
        running: processes with the name that the request had; None without a name.
        missing: which of :func:`troop.faults.tools` do not exist; ``atd`` if it does not run.
    """

    boot: str = ""
    qdiscs: int | None = None
    drops: int | None = None
    stress: int | None = None
    rollbacks: int | None = None
    hosts: int | None = None
    used: float | None = field(default=None, metadata=stored(decode=float))
    running: int | None = None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe: the request, and its answer.

    Attributes:
        token: fresh for each request, 32 hexadecimal digits.
        sent_at: just before the request, by the function's clock.
        command_id: Run Command's; "" while the request's answer is not known.
        answered_at: when the answer was read; None without one.
        reading: the answer; None without one, and for one that does not have the token, or cannot be understood.
        failure: why there is no reading, after the probe is over; "" otherwise.
    """

    token: str
    sent_at: datetime
    command_id: str = field(default="", metadata=stored(omit=True))
    answered_at: datetime | None = field(default=None, metadata=stored(omit=True))
    reading: Reading | None = field(default=None, metadata=stored(omit=True))
    failure: str = field(default="", metadata=stored(omit=True))

    @property
    def is_over(self) -> bool:
        """Whether nothing can come any more: it has its reading, or has failed."""
        return self.reading is not None or bool(self.failure)


def parse(output: str, token: str) -> Reading | None:
    """Reads a probe's output: the last line. None if it is not an answer to this token in every part."""
    lines = output.strip().splitlines()
    try:
        answer = json.loads(lines[-1]) if lines else None
    except ValueError:
        return None
    if not isinstance(answer, Mapping) or answer.get("token") != token:
        return None
    boot, missing = answer.get("boot"), answer.get("missing")
    if not isinstance(boot, str) or not boot or not isinstance(missing, list):
        return None
    return Reading(
        boot=boot,
        **{name: _count(answer.get(name)) for name in ("qdiscs", "drops", "stress", "rollbacks", "hosts", "running")},
        used=_number(answer.get("used")),
        missing=tuple(str(one) for one in missing),
    )


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
