"""Builds the commands for changes that a widget cannot make, ready to paste into a shell.

Names come from people and tags: a command is either exactly right or not shown.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import date
from typing import Any

DEFAULT_DEPLOYMENT = "Troop"
"""The default of the command's option --deployment."""


class Command(str):
    """A line for a shell: shown unchanged, never cut."""

    __slots__ = ()


@dataclass(frozen=True)
class Shell:
    """Commands for one deployment."""

    deployment: str
    region: str

    def line(self, *words: str, names: tuple[str, ...] = ()) -> Command | None:
        """Returns ``troop ...``; None if it contains an unprintable character, because such a line can be misleading.

        Args:
            words: the command and its options.
            names: names chosen by people; they come last, and are never taken for options.
        """
        which = [] if self.deployment == DEFAULT_DEPLOYMENT else ["--deployment", self.deployment]
        ends = ["--"] if any(name.startswith("-") for name in names) else []
        line = shlex.join(["troop", *which, "--region", self.region, *words, *ends, *names])
        return Command(line) if line.isprintable() else None

    # Commands for a unit

    def opt_out(self, unit: str, until: date | None = None) -> Command | None:
        end = ["--until", until.isoformat()] if until else []
        return self.line("opt-out", *end, "--reason", "why", names=(unit,))

    def opt_in(self, unit: str) -> Command | None:
        return self.line("opt-in", names=(unit,))

    def set(self, unit: str, key: str, value: Any) -> Command | None:
        """Returns the command that sets a policy's value, given in Python's types; None also for names that contain
        the separator, a comma.
        """
        if isinstance(value, tuple) and any("," in name or name != name.strip() for name in value):
            return None
        return self.line("set", names=(unit, f"{key}={_typed(value)}"))

    def why(self, unit: str) -> Command | None:
        return self.line("why", names=(unit,))

    # Commands for the whole deployment

    def halt(self) -> Command | None:
        return self.line("halt", "--reason", "why")

    def resume(self) -> Command | None:
        return self.line("resume")

    def leash(self) -> Command | None:
        return self.line("leash")

    def unleash(self) -> Command | None:
        return self.line("unleash")

    # Commands for runs

    def report(self, run: str) -> Command | None:
        return self.line("bench", "report", names=(run,))

    def status(self, run: str, *, standing: bool = False) -> Command | None:
        return self.line("fleet" if standing else "bench", "status", names=(run,))

    def watch(self, run: str) -> Command | None:
        return self.line("bench", "watch", names=(run,))

    def results(self, run: str) -> Command | None:
        return self.line("bench", "results", names=(run,))

    def stop(self, run: str, *, standing: bool = False) -> Command | None:
        return self.line(*(("fleet", "down") if standing else ("bench", "stop")), names=(run,))

    def jobs(self, fleet: str) -> Command | None:
        return self.line("fleet", "jobs", names=(fleet,))

    def scale(self, fleet: str, role: str, count: int) -> Command | None:
        return self.line("fleet", "scale", "--role", role, "--count", str(count), names=(fleet,))


def _typed(value: Any) -> str:
    """Formats a value for `troop set`."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value)
