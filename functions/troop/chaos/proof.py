"""Decides whether a lasting fault is over. Pure: it gets what was read, and never guesses.

No status of Systems Manager is a proof: ``Cancelled``, ``Failed`` and ``Success`` only say that a shell has ended.
Silence is none, and no metric is.
"""

from __future__ import annotations

from enum import StrEnum

from troop.chaos.injection import Injection
from troop.chaos.probe import READERS, Reading
from troop.faults.lasting_fault import LastingFault


class Presence(StrEnum):
    """Whether a fault is on its instance: proven over, proven there, or not proven."""

    GONE = "GONE"
    PRESENT = "PRESENT"
    UNKNOWN = "UNKNOWN"


def prove(fault: LastingFault, injection: Injection) -> tuple[Presence, str]:
    """Returns whether the fault is on its instance, and a sentence about it.

    GONE needs an answer to a probe that was sent after the command was seen in a final status, with this probe's token
    and the boot of the probe before: after a reboot the agent may run the document again.
    """
    before, after = injection.before, injection.after
    if before is None or before.reading is None or after is None:
        return Presence.UNKNOWN, "no probe after the fault was sent"
    if injection.over_at is None:
        return Presence.UNKNOWN, "Run Command has not shown that the fault's command is over"
    if after.sent_at < injection.over_at:
        return Presence.UNKNOWN, "the last probe was sent before the fault's command was over"
    if after.reading is None:
        return Presence.UNKNOWN, after.failure or "the last probe has no answer yet"
    earlier, now = before.reading, after.reading
    if earlier.boot != now.boot:
        return Presence.UNKNOWN, "the instance was booted again: its agent may run the document once more"
    if fault.returns:
        return _returned(injection, now)
    if lost := sorted(READERS & set(lacking(fault, now)) - set(earlier.missing)):
        return Presence.UNKNOWN, f"{', '.join(lost)} no longer exists: the probe cannot read what it would show"
    unread = [
        trace.field
        for trace in fault.traces
        if _value(earlier, trace.field) is None or _value(now, trace.field) is None
    ]
    if unread:
        return Presence.UNKNOWN, f"the probe could not read {', '.join(unread)}"
    left = [
        f"{trace.field} {_value(now, trace.field):g}, before {_value(earlier, trace.field):g}"
        for trace in fault.traces
        if (_value(now, trace.field) or 0) > (_value(earlier, trace.field) or 0) + trace.slack
    ]
    if left:
        return Presence.PRESENT, "a probe found " + ", ".join(left)
    return Presence.GONE, "a probe found no trace of it"


def objection(fault: LastingFault, injection: Injection) -> str:
    """Returns why the fault must not be injected after what the probe before has read; "" for no reason."""
    probe = injection.before
    if probe is None or probe.reading is None:
        return f"the probe before the fault has no answer: {probe.failure or 'it is not over'}" if probe else "no probe"
    reading = probe.reading
    fields = dict.fromkeys(("stress", "rollbacks", "hosts", *(trace.field for trace in fault.traces)))
    if unread := [name for name in fields if _value(reading, name) is None]:
        return f"the probe could not read {', '.join(unread)}"
    if left := [name for name in ("stress", "rollbacks", "hosts") if _value(reading, name)]:
        return (
            f"the instance is not clean: the probe found {', '.join(f'{one} {_value(reading, one):g}' for one in left)}"
        )
    missing = [tool for tool in lacking(fault, reading) if not injection.installs or tool in fault.modules]
    if missing:
        needed = dict.fromkeys(fault.tools[tool] for tool in missing)
        return f"the instance has no {', '.join(missing)}: install {', '.join(needed)} in its image"
    return fault.refusal(injection.parameters, {"used": reading.used, "running": reading.running})


def lacking(fault: LastingFault, reading: Reading) -> tuple[str, ...]:
    """Lists the programs and modules that the fault needs and the instance does not have."""
    return tuple(tool for tool in fault.tools if tool in reading.missing)


def packages(fault: LastingFault, reading: Reading) -> tuple[str, ...]:
    """Lists the packages of what is lacking, by their names on Amazon Linux 2023."""
    return tuple(dict.fromkeys(fault.tools[tool] for tool in lacking(fault, reading)))


def _returned(injection: Injection, now: Reading) -> tuple[Presence, str]:
    name = injection.parameters["process"]
    if now.running is None:
        return Presence.UNKNOWN, "the probe could not read the processes"
    if now.running == 0:
        return Presence.PRESENT, f"no process {name} runs"
    return Presence.GONE, f"{now.running} of process {name} run again"


def _value(reading: Reading, name: str) -> float | None:
    value: float | None = getattr(reading, name)
    return value
