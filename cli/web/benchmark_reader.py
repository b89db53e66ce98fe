"""Reads the benchmarks of a deployment for the page: their runs, figures, schedules and costs, for all tabs together.

A run that has ended does not change, so its results are read once. Every reading has a limit, and the page states it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from cli.bench import files, follow, history
from cli.bench.history import Figure, Series
from cli.client.bench_client import BenchClient
from cli.shared import side_by_side, times
from cli.shared.errors import CliError, Exit
from troop.bench.records.record import RunStatus
from troop.shared import moments

MOST_RUNS = 500
"""The newest runs of all benchmarks that are listed: five requests."""

MOST_READ = 60
"""The newest runs of one benchmark whose results are read, each with a request or more."""

MOST_COMPARED = 20
"""The benchmarks of the list whose last two runs are read."""

AT_A_TIME = 8
"""Results that are read side by side."""

MOST_IN_MEMORY = 400
"""Results that stay in memory."""

SECONDS = 20
"""The age at which runs and schedules are read again."""

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
    _views: dict[str, dict[str, Any]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _views_lock: threading.Lock = field(default_factory=threading.Lock)

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
        pairs: dict[str, list[Run]] = {}
        for run in self._listing()["runs"]:
            pair = pairs.setdefault(run["name"], []) if _has_results(run) else None
            if pair is not None and len(pair) < 2 and all(run.get("size") == one.get("size") for one in pair):
                pair.append(run)
        chosen = dict(list(pairs.items())[:MOST_COMPARED])
        views = self._results([run for pair in chosen.values() for run in pair])
        return {"figures": {name: _now_and_before(pair, views) for name, pair in chosen.items()}}

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
        views = self._results(measured[:MOST_READ])
        every = history.series(views.values(), shown, None)
        one = next((each for each in every if each.name == measurement), None) or _main(every, views.values(), shown)
        return {
            **_about(listing),
            **self._benchmark(name, listing),
            "runs": [_shown(run) for run in runs],
            "figure": shown.value,
            "figures": [[each.value, each.unit] for each in Figure],
            "measurement": one.name if one else None,
            "measurements": [each.name for each in every],
            "values": _values(one),
            "unread": sorted({run["run"] for run in measured[:MOST_READ]} - views.keys()),
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

    def _results(self, runs: Sequence[Run]) -> dict[str, dict[str, Any]]:
        """Returns the runs with their results, by id, in this order; without those that cannot be read."""
        with self._views_lock:
            missing = [run["run"] for run in runs if run["run"] not in self._views]
            for first in range(0, len(missing), AT_A_TIME):
                some = missing[first : first + AT_A_TIME]
                answers = side_by_side.answers({run: partial(self._view, run) for run in some})
                self._views |= {run: view for run, view in answers.items() if not isinstance(view, CliError)}
            known = {run["run"]: self._views[run["run"]] for run in runs if run["run"] in self._views}
            self._views = dict(list(self._views.items())[-MOST_IN_MEMORY:])
        return known

    def _view(self, run: str) -> dict[str, Any]:
        return follow.complete(self.client, self.client.run(run, resources=False))


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


def _main(every: Sequence[Series], views: Iterable[Mapping[str, Any]], figure: Figure) -> Series | None:
    """Returns the series of a figure that belongs to the main one of the throughput, if there is such."""
    leading = None if figure is Figure.THROUGHPUT else history.main(history.series(views, Figure.THROUGHPUT, None))
    same = [one for one in every if leading and one.measurement == leading.measurement]
    return same[0] if same else history.main(every)


def _now_and_before(pair: Sequence[Run], views: Mapping[str, Mapping[str, Any]]) -> dict[str, Any] | None:
    """Returns the main figure of the newer run, and the same of the older one; None without any."""
    read = [views[run["run"]] for run in pair if run["run"] in views]
    newest = history.main(history.series(read[:1], Figure.THROUGHPUT, None))
    if newest is None:
        return None
    both = history.series(read, Figure.THROUGHPUT, None)
    values = next(one.values for one in both if one.measurement == newest.measurement)
    before = values[-2].value if len(values) > 1 else None
    return {"measurement": newest.name, "now": values[-1].value, "before": before}


def _values(one: Series | None) -> list[dict[str, Any]]:
    return [{"run": each.run, "at": moments.iso(each.at), "value": each.value} for each in (one.values if one else ())]
