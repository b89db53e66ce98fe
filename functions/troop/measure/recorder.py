"""Records a script's operations from any number of threads. Each process needs its own recorder.

    with Recorder.of_this_phase() as recorder:
        started = time.perf_counter()
        body = read(...)
        recorder.ok("read", time.perf_counter() - started, len(body))

An open loop sends operations by a schedule, whether or not earlier ones have ended:

    for due in recorder.schedule(per_second=200):
        started = time.perf_counter()
        body = read(...)
        recorder.ok("read", time.perf_counter() - started, len(body), due=due)

On exit it writes ``operations-<process>-<number>.json`` to the phase's results. If the process dies before, the agent
fails the phase, because the operations of the others alone would look like all.
"""

from __future__ import annotations

import itertools
import math
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Callable

from troop.measure import phase_environment, recordings
from troop.measure.empty import empty_operation
from troop.measure.histogram import Histogram, check_value
from troop.measure.live import Recent, recent
from troop.measure.live_writer import LiveWriter
from troop.measure.operations import (
    NAME,
    RESPONSE,
    SERVICE,
    UNFINISHED,
    Operation,
    PerSecond,
    document_of,
)
from troop.measure.schedule import Schedule
from troop.measure.whole_file import write_whole
from troop.measure.windows import Windows, add_counts

FORMAT = "troop.operations/1"

MOST_RECORDED = 64
"""The most operations of a recorder: a running summary stops its threads for as long as it copies all of them."""
RECENT_SECONDS = 10
"""The length of the periods of which the last two say how long operations take at the end."""

BLOCK = 512
"""Successes that are counted together, in loops that run in C. More would be hardly faster, and the other threads wait
meanwhile: less than half a millisecond.
"""

ORDINARY_SECONDS = 1e9
"""The largest time that needs no check in microseconds."""

_numbers = itertools.count()

_Success = tuple[float, ...]
"""A success: the moment of its end, its time, bytes, and its service time if the time is a response time."""


@dataclass
class _Recording:
    """An operation, and the times of the current step, which lie either all in the warm-up or all in the measured time.

    They are counted once and added to both histograms at the end of the step, so values over time cost no extra time.

    Attributes:
        times: of operations that ended from ``begin`` to before ``end``, seconds since 1970.
        measured: times of earlier steps of the measured time, by bucket of :mod:`troop.measure.windows`.
        new: successes that are not counted yet. Threads add to its end without a lock.
    """

    operation: Operation
    over_time: Windows
    times: Histogram = field(default_factory=Histogram)
    begin: float = 0.0
    end: float = 0.0
    measured: dict[int, int] = field(default_factory=dict)
    new: list[_Success] = field(default_factory=list)
    timing: str | None = None

    def count(self, second: int, successes: list[_Success], measured_from: float) -> None:
        """Counts successes of one second, which lies in the current step."""
        _, times, moved, *service = zip(*successes)
        self.times.record_all(_microseconds(times))
        per_second = self.operation.per_second
        per_second.count[second - per_second.start] += len(successes)
        if self.begin >= measured_from:
            self.operation.bytes += sum(moved)
            if self.operation.service is not None:
                self.operation.service.record_all(_microseconds(service[0]))

    def settle(self, measured_from: float) -> None:
        """Adds the times of the current step to both histograms."""
        if self.times.count:
            added = self.over_time.take(self.begin, self.times)
            if self.begin >= measured_from:
                self.operation.times.add(self.times)
                add_counts(self.measured, added)
            self.times = Histogram()


class Recorder:
    """A recorder of operations that end in the measured time.

    Operations of the warm-up appear only over time; all others are ignored.

    Args:
        results: the folder for the file.
        measured_from: seconds since 1970.
        measured_seconds: length of the measured time.
        warm_up_seconds: length of the warm-up before it.
        clock: seconds since 1970. By default the time of day is read once, and the monotonic clock continues it:
            setting the clock must not move operations.
        tool: the name of the program that measures, if it is not the script itself, such as ``Locust``.

    Raises:
        ValueError: ``tool`` is not a name.
    """

    def __init__(
        self,
        results: str | os.PathLike[str],
        measured_from: float,
        measured_seconds: float,
        clock: Callable[[], float] | None = None,
        warm_up_seconds: float = 0.0,
        tool: str = "",
    ) -> None:
        if tool and not NAME.fullmatch(tool):
            raise ValueError(f"tool is {tool!r}: must match {NAME.pattern}")
        self._tools = frozenset({tool} if tool else ())
        self.measured_from, self.measured_until = measured_from, measured_from + measured_seconds
        self._path = Path(results) / f"operations-{os.getpid()}-{next(_numbers)}.json"
        self._began = measured_from - warm_up_seconds
        self._first = math.floor(self._began)
        self._seconds = math.ceil(self.measured_until) - self._first
        self._length = warm_up_seconds + measured_seconds
        self._recordings: dict[str, _Recording] = {}
        self._lock = threading.Lock()
        self._schedules: list[Schedule] = []
        self._recent, self._slowest, self._slowest_before = 0, 0.0, 0.0
        self.now = clock or _steady_clock()
        Histogram().record_all([0])  # computes its table now, and not while operations wait
        self._live = LiveWriter(None, self.recent)
        self._mark: Path | None = None

    @classmethod
    def of_this_phase(cls, tool: str = "") -> Recorder:
        """Creates a recorder from the script's environment, which also writes running summaries.

        Waits until the load of the phase begins: a phase with ``start_up`` starts its script before.

        Raises:
            OSError: the folder for results does not exist, or is not writable.
        """
        begin, length, warm_up = phase_environment.measured()
        recorder = cls(phase_environment.results(), begin, length, warm_up_seconds=warm_up, tool=tool)
        recorder._mark = recordings.begin(phase_environment.results())
        recorder._live = LiveWriter(phase_environment.results(), recorder.recent, recorder.now).__enter__()
        phase_environment.await_start()
        return recorder

    def schedule(self, per_second: float, share: tuple[int, int] = (0, 1)) -> Schedule:
        """Returns the moments at which operations are due, from now to the end of the measured time.

        Operations that were due and have not ended at the end are errors of the kind
        :data:`~troop.measure.operations.UNFINISHED`, if they waited longer than those that ended last: the others are
        merely under way.

        Args:
            per_second: the rate of this node.
            share: the number of this process, from 0, and the number of processes that share the rate.

        Raises:
            ValueError: the rate is not a number above 0.
        """
        its = Schedule(per_second, self.now(), self.measured_until, self.now, share=share)
        self._schedules.append(its)
        return its

    def ok(self, operation: str, seconds: float, moved: int = 0, due: float | None = None) -> None:
        """Records a success that ended now.

        Args:
            seconds: its service time, from the moment when it was sent.
            moved: bytes.
            due: the moment when it was to be sent, by the clock of :attr:`now`. Then the recorded time is the response
                time, from that moment, and service times are recorded apart.

        Raises:
            ValueError: there are too many operations, or the name is invalid; or some of its successes have a ``due``,
                and others do not.
        """
        now = self.now()
        if self._schedules:
            self._end(due, now, seconds)
        if self._began <= now < self.measured_until:
            time_of = seconds if due is None else max(seconds, now - due)
            recording = self._recordings.get(operation)
            if (
                recording is None
                or recording.timing is not (SERVICE if due is None else RESPONSE)
                or not 0 <= seconds <= time_of < ORDINARY_SECONDS
            ):
                seconds, time_of = max(seconds, 0), max(time_of, 0)
                recording = self._checked(operation, SERVICE if due is None else RESPONSE, time_of)
            new = recording.new
            new.append((now, time_of, moved + 0) if due is None else (now, time_of, moved + 0, seconds))
            if now >= recording.end or len(new) >= BLOCK:
                with self._lock:
                    self._count(recording)

    def error(self, operation: str, kind: str, due: float | None = None) -> None:
        """Records an error that happened now. ``kind`` is a short name for a class of errors, such as ``timeout``.

        Args:
            due: as in :meth:`ok`; needed if the thread is not the one that got it from the schedule.
        """
        now = self.now()
        self._end(due, now)
        if self._began <= now < self.measured_until:
            with self._lock:
                failing = (self._recordings.get(operation) or self._new(operation)).operation
                failing.fail(int(now), kind, is_measured=now >= self.measured_from)

    def _end(self, due: float | None, now: float, seconds: float = 0.0) -> None:
        """Notes for schedules that an operation has ended, and how long the slowest of the last ones took."""
        if self._schedules and now < self.measured_until:
            with self._lock:
                for its in self._schedules:
                    its.end(due)
                if (period := int(now) // RECENT_SECONDS) != self._recent:
                    self._recent, self._slowest_before, self._slowest = period, self._slowest, 0.0
                self._slowest = max(self._slowest, seconds if due is None else now - due)

    def _checked(self, name: str, timing: str, seconds: float) -> _Recording:
        """Returns the recording of a success that is the first of its operation, or not ordinary.

        Raises:
            ValueError: as :meth:`ok`; or a time is not a number, or longer than the histogram's.
        """
        with self._lock:
            recording = self._recordings.get(name) or self._new(name)
            whole = recording.operation
            if whole.timing is None:
                recording.timing = whole.timing = timing
                whole.service = Histogram() if timing is RESPONSE else None
            elif whole.timing is not timing:
                raise ValueError(f"cannot record {name!r} with due and without: use two names")
            check_value(*_microseconds([seconds]))
            return recording

    def _count(self, recording: _Recording) -> None:
        """Counts the successes so far, second by second."""
        successes = recording.new[:]
        del recording.new[: len(successes)]  # not those that were added meanwhile
        while successes:
            now = successes[0][0]
            if not recording.begin <= now < recording.end:
                self._turn(recording, now)
            second = int(now)
            begin, end = max(recording.begin, second), min(recording.end, second + 1)
            its = [one for one in successes if begin <= one[0] < end]
            recording.count(second, its, self.measured_from)
            if len(its) == len(successes):
                break
            successes = [one for one in successes if not begin <= one[0] < end]

    def _new(self, name: str) -> _Recording:
        if len(self._recordings) >= MOST_RECORDED or not NAME.fullmatch(name):
            raise ValueError(
                f"cannot record operation {name!r}: names must match {NAME.pattern}, and there are at most "
                f"{MOST_RECORDED}"
            )
        operation = self._empty()
        assert operation.over_time is not None
        recording = self._recordings[name] = _Recording(operation, operation.over_time)
        return recording

    def _empty(self) -> Operation:
        return replace(empty_operation(self._first, self._seconds, self._length), tools=self._tools)

    def _turn(self, recording: _Recording, now: float) -> None:
        """Moves a recording to another step, or from the warm-up to the measured time."""
        recording.settle(self.measured_from)
        step = recording.over_time.step_seconds
        begin = int(now) // step * step
        recording.begin, recording.end = max(begin, self._began), begin + step
        if recording.begin < self.measured_from < recording.end:
            if now < self.measured_from:
                recording.end = self.measured_from
            else:
                recording.begin = self.measured_from

    def _settled(self) -> dict[str, Operation]:
        for recording in self._recordings.values():
            self._count(recording)
            recording.settle(self.measured_from)
        return {name: recording.operation for name, recording in self._recordings.items()}

    def totals(self, operation: str) -> tuple[int, int]:
        """Returns the number of successes and of errors in the measured time so far."""
        with self._lock:
            counted = self._settled().get(operation, Operation())
            return counted.times.count, sum(counted.errors.values())

    def recent(self, until: int) -> Recent:
        """Returns what operations did in the interval of a running summary that ends at ``until``."""
        with self._lock:
            settled = self._settled()  # before the copies
            measured = {name: dict(recording.measured) for name, recording in self._recordings.items()}
            return recent(settled, until, measured=measured)

    def _with_unfinished(self) -> dict[str, Operation]:
        """Returns all operations with the errors of those that never ended. A schedule does not know names, so these
        belong to the only operation, or to one of their own.
        """
        settled = self._settled()
        number = sum(its.unfinished(max(self._slowest, self._slowest_before)) for its in self._schedules)
        if not number:
            return settled
        name = (
            next(iter(settled)) if len(settled) == 1 else UNFINISHED if len(settled) < MOST_RECORDED else max(settled)
        )
        whole, counts = settled.get(name) or self._empty(), PerSecond()
        counts.add(whole.per_second)
        whole = replace(whole, errors=dict(whole.errors), per_second=counts)
        whole.fail(self._first + self._seconds - 1, UNFINISHED, number)
        return {**settled, name: whole}

    def document(self) -> dict[str, Any]:
        with self._lock:
            return {"format": FORMAT, "operations": document_of(self._with_unfinished())}

    def write(self) -> Path:
        """Writes the file atomically."""
        self._live.__exit__()
        written = write_whole(self._path, self.document())
        if self._mark is not None:
            recordings.end(self._mark)
        return written

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.write()


def _microseconds(seconds: Sequence[float]) -> list[int]:
    return [round(one * 1_000_000) for one in seconds]


def _steady_clock() -> Callable[[], float]:
    monotonic = time.monotonic
    offset = time.time() - monotonic()
    return lambda: monotonic() + offset
