"""Selects the samples of JMeter's log that count, so that nothing counts twice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

MOST_REMEMBERED = 100_000
"""The most threads, and transactions, to remember."""
JITTER = 10
"""Milliseconds by which two samples of a thread may overlap because JMeter corrects its clock."""

_NUMBERED = re.compile(r"(-[0-9]+)+")


class Sample(NamedTuple):
    """A line of the log.

    Attributes:
        began: milliseconds since 1970.
        ended: milliseconds since 1970, after pauses, which are not part of the sample's time.
        took: milliseconds.
        error: kind of error; None if it succeeded.
        moved: bytes.
    """

    label: str
    began: int
    ended: int
    took: int
    error: str | None
    moved: int


class Once:
    """Selects the samples that count. Remembers the last sample of each thread.

    A sampler's requests follow it and lie within it, because JMeter logs a sample when it ends. So a sample that ended
    no later than the one before it in its thread is a request of that one. This holds as long as a thread's samples
    follow one another. Where they overlap, only names show requests.

    Times are whole milliseconds, so a sample without length at the edge of another may be part of it or not. Then the
    last certain case of the same labels decides.

    Attributes:
        unsure: the number of samples that count although they may be requests of a sampler.
        by_time: the number of requests that only their times showed.
    """

    def __init__(self) -> None:
        self.unsure = self.by_time = 0
        self._last: dict[str, Sample] = {}
        self._held: dict[str, Sample] = {}  # transactions whose parts may follow
        self._with_parts: dict[str, bool] = {}
        self._are_requests: dict[tuple[str, str], bool] = {}  # by the labels of a sample and of the one after it
        self._overlapping: dict[str, None] = {}

    @property
    def overlapping(self) -> int:
        """The number of threads whose samples overlap."""
        return len(self._overlapping)

    def counting(self, thread: str, sample: Sample, *, transaction: bool) -> Iterator[Sample]:
        """Yields the samples that count, now that the next one is known."""
        held = self._held.pop(thread, None)
        if held is not None and not self._followed(held, sample, transaction=transaction):
            self._remember(thread, held)
            yield held
        last = self._last.get(thread)
        if not transaction:
            if last is None or not self._is_of(sample, last, thread):
                self._remember(thread, sample)
                yield sample
        elif last is None or not self._preceded(sample, last):
            if len(self._held) >= MOST_REMEMBERED:
                first = self._held.pop(next(iter(self._held)))
                if not self._with_parts.get(first.label, False):
                    yield first
            self._held[thread] = sample

    def rest(self) -> Iterator[Sample]:
        """Yields the samples that count at the end of the log."""
        yield from self._held.values()

    def _is_of(self, sample: Sample, whole: Sample, thread: str) -> bool:
        """Checks whether a sample is one of the requests of the sampler before it."""
        if sample.ended > whole.ended:
            if self._are_requests:
                self._learn_requests(sample, whole, False)
            if whole.began <= sample.began < whole.ended - JITTER:
                self._learn_overlap(thread)
            return False
        if sample.began < whole.began:
            return False
        if _is_numbered(sample.label, whole.label):
            return True
        if thread in self._overlapping:
            return False
        if sample.began < whole.ended:
            if sample[:3] == whole[:3]:  # the only request of a sampler is not logged apart
                self._learn_overlap(thread)
                return False
            self.by_time += 1
            self._learn_requests(sample, whole, True)
            return True
        is_request = self._are_requests.get((whole.label, sample.label))
        if is_request is None:
            self.unsure += 1
        return bool(is_request)

    def _learn_overlap(self, thread: str) -> None:
        if len(self._overlapping) < MOST_REMEMBERED:
            self._overlapping[thread] = None

    def _learn_requests(self, sample: Sample, whole: Sample, are_requests: bool) -> None:
        labels = whole.label, sample.label
        if labels in self._are_requests or (are_requests and len(self._are_requests) < MOST_REMEMBERED):
            self._are_requests[labels] = are_requests

    def _preceded(self, transaction: Sample, last: Sample) -> bool:
        if last.began < transaction.began:
            return False
        if last.ended > transaction.began:
            self._learn(transaction, True)
            return True
        return self._with_parts.get(transaction.label, False)

    def _followed(self, held: Sample, after: Sample, *, transaction: bool) -> bool:
        within = held.began <= after.began and after.ended <= held.ended
        around = transaction and (after.began, after.ended) == (held.began, held.ended)
        if within and (after.began == held.ended or around):
            return self._with_parts.get(held.label, True)
        self._learn(held, within)
        return within

    def _learn(self, transaction: Sample, with_parts: bool) -> None:
        if transaction.label in self._with_parts or len(self._with_parts) < MOST_REMEMBERED:
            self._with_parts[transaction.label] = with_parts

    def _remember(self, thread: str, sample: Sample) -> None:
        """Remembers the thread's last sample; forgets the thread that has been silent for longest."""
        self._last.pop(thread, None)
        if len(self._last) >= MOST_REMEMBERED:
            del self._last[next(iter(self._last))]
        self._last[thread] = sample


def _is_numbered(label: str, whole: str) -> bool:
    return label.startswith(whole) and _NUMBERED.fullmatch(label, len(whole)) is not None
