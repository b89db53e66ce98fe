"""Reads the benchmarks of a deployment for the page: their runs, figures, schedules and costs, for all tabs together.

Runs that have ended have a line each, so a benchmark's history is one query. Every reading has a limit, and the page
states it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from cli.bench import files, history
from cli.client.bench_client import BenchClient
from cli.shared import side_by_side, times
from cli.shared.errors import CliError, Exit
from troop.bench.records.history import Figure, Series, histories, main
from troop.bench.records.line import Line
from troop.bench.records.record import RunStatus
from troop.shared import moments

MOST_RUNS = 500
"""The newest runs of all benchmarks that are listed: five requests."""

MOST_READ = 400
"""The newest runs of one benchmark whose lines are read: a year of nights."""

MOST_COMPARED = 20
"""The benchmarks of the list whose last two runs are read."""

ENOUGH_TO_COMPARE = 10
"""The newest lines among which the last two runs of the same size are searched."""

AT_A_TIME = 8
"""Benchmarks whose lines are read side by side."""

MOST_IN_MEMORY = 50
"""Benchmarks whose lines stay in memory."""

SECONDS = 20
"""The age at which runs and schedules are read again, and lines that lack the newest run: it waits for its report."""

_WITH_RESULTS = frozenset({RunStatus.SUCCEEDED, RunStatus.PARTIAL})
_LIST = ("run", "name", "size", "status", "at", "ended_at", "requested_by", "nodes", "cost", "estimate")

Run = Mapping[str, Any]


@dataclass
class BenchmarkReader:
    """Reads benchmarks, and keeps what it has read."""

    client: BenchClient
    now: Callable[[], datetime] = times.now
    _read: tuple[datetime, int, dict[str, Any]] | None = None
    _changes: int = 0
    _lines: dict[str, _Recorded] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _lines_lock: threading.Lock = field(default_factory=threading.Lock)

    def document(self) -> dict[str, Any]:
        """Returns each benchmark with its last run, schedules and the month's cost, and the runs that have not ended.

        Raises:
            CliError: the runs cannot be read.
        """
        listing = self._listing()
        names = dict.fromkeys([run["name"] for run in listing["runs"]] + [one["benchmark"] for one in _plans(listing)])
        return {
            **_about(listing),
            "benchmarks": [self._benchmark(name, listing) for name in names],
            "open": [_shown(run) for run in listing["runs"] if not run["ended_at"]],
        }

    def figures(self) -> dict[str, Any]:
        """Returns the main figure of the last two runs of each benchmark, by its name.

        Raises:
            CliError: the runs cannot be read.
        """
        newest: dict[str, Run] = {}
        for run in self._listing()["runs"]:
            if _has_results(run):
                newest.setdefault(run["name"], run)
        chosen = dict(list(newest.items())[:MOST_COMPARED])
        recorded = self._recorded(chosen, ENOUGH_TO_COMPARE)
        return {"figures": {name: _now_and_before(recorded.get(name, []), run) for name, run in chosen.items()}}

    def benchmark(self, name: str, figure: str, measurement: str) -> dict[str, Any]:
        """Returns one benchmark with its runs, and a figure over those with results.

        Args:
            figure: a :class:`Figure`; "" for throughput.
            measurement: the name of a series; "" for the main one.

        Raises:
            CliError: there is no such benchmark or figure, or the runs cannot be read.
        """
        try:
            shown = Figure(figure or Figure.THROUGHPUT)
        except ValueError:
            raise CliError(Exit.USAGE, f"there is no figure {figure!r}: use one of {', '.join(Figure)}") from None
        listing = self._listing()
        runs = [run for run in listing["runs"] if run["name"] == name]
        is_planned = any(one["benchmark"] == name for one in _plans(listing))
        if not runs and not is_planned and files.in_catalogue(name) is None:
            raise CliError(Exit.NO_SUCH_UNIT, f"there is no run and no schedule of a benchmark {name!r}")
        measured = [run for run in runs if _has_results(run)]
        lines = self._recorded({name: measured[0]}, MOST_READ, needed=True)[name] if measured else []
        every = histories(lines, shown)
        one = next((each for each in every if each.name == measurement), None) or _main(every, lines, shown)
        known = {line.run for line in lines}
        return {
            **_about(listing),
            **self._benchmark(name, listing),
            "runs": [_shown(run) for run in runs],
            "figure": shown.value,
            "figures": [[each.value, each.unit] for each in Figure],
            "measurement": one.name if one else None,
            "measurements": [each.name for each in every],
            **_values(one),
            "unrecorded": sum(run["run"] not in known for run in measured[:MOST_READ]),
            "beyond": max(0, len(measured) - MOST_READ),
        }

    def before(self, run: str) -> dict[str, Any]:
        """Returns the id of the last run with results before a run, of the same benchmark and size; None without one.

        Raises:
            CliError: the runs cannot be read.
        """
        if all(each["run"] != run for each in self._listing()["runs"]):
            self.forget()  # it is newer
        runs = self._listing()["runs"]
        one = next((each for each in runs if each["run"] == run), None)
        older = [] if one is None else runs[runs.index(one) + 1 :]
        same = (each["run"] for each in older if _has_results(each) and _is_like(each, one))
        return {"before": next(same, None)}

    def forget(self) -> None:
        """Reads runs and schedules again at the next request, and does not wait for what is being read now: a change
        calls this before its answer.
        """
        self._changes += 1

    def _listing(self) -> dict[str, Any]:
        with self._lock:
            now, changes = self.now(), self._changes
            if self._read:
                at, known, listing = self._read
                if known == changes and (now - at).total_seconds() < SECONDS:
                    return listing
            answers = side_by_side.answers(
                {"runs": partial(self.client.runs, MOST_RUNS), "schedules": self.client.schedules}
            )
            if isinstance(answers["runs"], CliError):
                raise answers["runs"]
            self._read = now, changes, (listing := {"at": now, **answers})
            return listing

    def _benchmark(self, name: str, listing: Mapping[str, Any]) -> dict[str, Any]:
        runs = [run for run in listing["runs"] if run["name"] == name]
        return {
            "name": name,
            "last": _shown(runs[0]) if runs else None,
            "schedules": [one for one in _plans(listing) if one["benchmark"] == name],
            "month_cost": _cost_of(runs, listing["at"]),
        }

    def _recorded(self, newest: Mapping[str, Run], most: int, *, needed: bool = False) -> dict[str, list[Line]]:
        """Returns the lines of benchmarks, newest first; without those that cannot be read.

        Args:
            newest: of each benchmark the newest run with results.
            most: of each.
            needed: whether a failure is an error.

        Raises:
            CliError: they cannot be read.
        """
        with self._lines_lock:
            now = self.now()
            missing = [name for name, run in newest.items() if not self._is_known(name, run["run"], most, now)]
            for first in range(0, len(missing), AT_A_TIME):
                some = missing[first : first + AT_A_TIME]
                for name, lines in side_by_side.answers(
                    {one: partial(self.client.history, one, most) for one in some}
                ).items():
                    if not isinstance(lines, CliError):
                        self._lines[name] = _Recorded(now, most, lines)
                    elif needed:
                        raise lines
            known = {name: self._lines[name].lines for name in newest if name in self._lines}
            self._lines = dict(list(self._lines.items())[-MOST_IN_MEMORY:])
        return known

    def _is_known(self, name: str, newest: str, most: int, now: datetime) -> bool:
        known = self._lines.get(name)
        if known is None or known.most < most:
            return False
        return any(line.run == newest for line in known.lines) or (now - known.at).total_seconds() < SECONDS


@dataclass(frozen=True)
class _Recorded:
    """Lines of a benchmark that were read: at most ``most``, newest first."""

    at: datetime
    most: int
    lines: list[Line]


def _about(listing: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what concerns all benchmarks."""
    schedules = listing["schedules"]
    is_unread = isinstance(schedules, CliError)
    return {
        "month": f"{listing['at']:%Y-%m}",
        "limited": MOST_RUNS if len(listing["runs"]) == MOST_RUNS else None,
        "off": not is_unread and schedules["off"],
        "schedules_error": str(schedules) if is_unread else None,
    }


def _plans(listing: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the schedules; none if they cannot be read."""
    schedules = listing["schedules"]
    return [] if isinstance(schedules, CliError) else schedules["schedules"]


def _has_results(run: Run) -> bool:
    return bool(run["ended_at"]) and run["status"] in _WITH_RESULTS


def _is_like(one: Run, other: Run | None) -> bool:
    return other is not None and all(one.get(key) == other.get(key) for key in ("name", "size"))


def _shown(run: Run) -> dict[str, Any]:
    return {key: run.get(key) for key in _LIST} | {"reason": (run["reason"] or "").partition("\n")[0] or None}


def _cost_of(runs: Iterable[Run], now: datetime) -> dict[str, Any] | None:
    """Sums what the runs of the current month cost, of those that have not ended what they are expected to."""
    month = [run for run in runs if run["at"].startswith(f"{now:%Y-%m}")]
    costs = [run["cost"] for run in month if run["cost"]]
    ahead = [run["estimate"] for run in month if not run["cost"] and not run["ended_at"] and run["estimate"]]
    if not costs and not ahead:
        return None
    return {
        "amount": sum(one["amount"] for one in costs) + sum(one["expected"] for one in ahead),
        "currency": [*costs, *ahead][0]["currency"],
        "runs": len(month),
        "is_expected": bool(ahead),
        "is_partial": any(one["unknown"] for one in costs),
    }


def _main(every: Sequence[Series], lines: Sequence[Line], figure: Figure) -> Series | None:
    """Returns the series of a figure that belongs to the main one of the throughput, if there is such."""
    leading = None if figure is Figure.THROUGHPUT else main(histories(lines, Figure.THROUGHPUT))
    same = [one for one in every if leading and (one.size, one.key) == (leading.size, leading.key)]
    return same[0] if same else main(every)


def _now_and_before(lines: Sequence[Line], newest: Run) -> dict[str, Any] | None:
    """Returns the main figure of the newest run, and the same of the run before it of this size; None without any."""
    same = [line for line in lines if line.size == newest.get("size")]
    current = main(histories(same[:1], Figure.THROUGHPUT))
    if current is None:
        return None
    values = [value for one in histories(same[:2], Figure.THROUGHPUT) if one.key == current.key for value in one.values]
    own = [value.own for value in sorted(values, key=lambda one: one.line.at)]  # series differ in their baselines
    return {"measurement": current.name, "now": own[-1], "before": own[-2] if len(own) > 1 else None}


def _values(one: Series | None) -> dict[str, Any]:
    """Returns the values and changes of a series."""
    if one is None:
        return {"against": "", "noise": None, "values": [], "changes": []}
    return {
        "against": one.against,
        "noise": one.noise,
        "values": [
            {"run": value.line.run, "at": moments.iso(value.line.at), "value": value.own, "ratio": value.ratio}
            for value in one.values
        ],
        "changes": [
            {
                "run": change.first.run,
                "index": change.index,
                "levels": [change.before, change.after],
                "before": history.level(one, change.before),
                "after": history.level(one, change.after),
                "text": history.difference(one, change),
                "is_worse": change.is_worse,
                "lasts": change.lasts,
                "beside": [history.beside(each) for each in change.beside],
            }
            for change in one.changes
        ],
    }
