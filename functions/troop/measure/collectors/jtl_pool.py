"""Counts parts of JMeter's log in as many processes as the node has processors."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from types import TracebackType
from typing import Callable

from troop.measure.collectors.jtl_columns import PART, Counts, Labels, Layout, Tally, counts_of
from troop.measure.collectors.window import Window

FAR = 4 * PART
"""Bytes that wait in a log before processes are worth their start, which takes as long as to count a part."""
PARTS_OF_A_PROCESS = 2
"""So that no process waits for its next part. Memory is bounded by the parts of all processes."""

_tally: Tally | None = None
"""Of this process."""


class Processes:
    """The processes, started when they are first needed.

    Args:
        waiting: the number of bytes of the log that are there and have not been read.
        number: of processes; by default of the processors that this one may use.
    """

    def __init__(
        self,
        layout: Layout,
        window: Window,
        waiting: Callable[[], int],
        *,
        stamped_at_end: bool,
        number: int | None = None,
    ) -> None:
        self._number = number or len(os.sched_getaffinity(0))
        self._waiting, self._of_start = waiting, (layout, window, stamped_at_end)
        self._executor: ProcessPoolExecutor | None = None
        self.most = PARTS_OF_A_PROCESS * self._number

    def is_behind(self) -> bool:
        """Checks whether so much of the log is there that processes are worth their cost."""
        return self._number > 1 and self._waiting() >= (PART if self._executor else FAR)

    def count(self, text: str) -> Future[Counts | None]:
        """Counts whole rows: None if one of them needs a closer look."""
        if self._executor is None:
            # A forked process would have the locks of other threads of this one, as they were at that moment.
            context = multiprocessing.get_context("forkserver")
            self._executor = ProcessPoolExecutor(self._number, context, _start, self._of_start)
        try:
            return self._executor.submit(_count, text)
        except BrokenExecutor as error:
            failed: Future[Counts | None] = Future()
            failed.set_exception(error)
            return failed

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, of: TracebackType | None) -> None:
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)


def _start(layout: Layout, window: Window, stamped_at_end: bool) -> None:
    global _tally
    _tally = Tally(layout, window, Labels(finds_parts=layout.finds_parts), stamped_at_end=stamped_at_end)


def _count(text: str) -> Counts | None:
    assert _tally is not None  # set by the initializer of the process
    return counts_of(_tally, text)
