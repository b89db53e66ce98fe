"""The events of a worker, and the state that they leave. Both follow from a seed alone, so a verifier can replay them.

A worker has the keys 0, 1, 2 and so on; a higher key is newer. An event updates the state of one key:

- With probability ``new_share`` the key is new.
- Otherwise its age is ``keys * u ** skew``, with u uniform from 0 to 1. So the newest part p of the keys receives the
  part ``p ** (1 / skew)`` of these events.

The state of a key is the number of its events and a digest of their numbers in order. A stored value is the state,
a filler that depends on the digest, and a checksum. A lost, doubled, reordered or torn update changes the value.
"""

from __future__ import annotations

import random
import struct
import zlib
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

_MULTIPLIER, _INCREMENT, _MASK = 6364136223846793005, 1442695040888963407, (1 << 64) - 1
_HEADER, _CHECKSUM = struct.Struct("<QQQ"), struct.Struct("<I")
LEAST_BYTES = _HEADER.size + _CHECKSUM.size
"""The smallest value."""
MOST_BYTES = 1 << 16
"""The largest value."""
_FILLER = random.Random("filler").getrandbits(8 * 2 * MOST_BYTES).to_bytes(2 * MOST_BYTES, "little")
_REPLAYED_AT_ONCE = 10_000


class DamageError(Exception):
    """A stored value is not one that a worker has written, or is not there."""


@dataclass(frozen=True)
class Workload:
    """The parameters that determine the events of one worker.

    Attributes:
        worker: its number, unique in the cell.
        keys: the number of keys before the first event.
        new_share: the part of the events that have a new key, from 0 to below 1.
        skew: 1 if all keys are equally likely; more prefers newer keys.
        value_bytes: the size of a stored value.

    Raises:
        ValueError: a value is out of its range.
    """

    seed: int
    worker: int
    keys: int
    new_share: float
    skew: float
    value_bytes: int

    def __post_init__(self) -> None:
        for name, is_valid, allowed in (
            ("keys", self.keys >= 1, "at least 1 for each worker"),
            ("new_share", 0 <= self.new_share < 1, "from 0 to below 1"),
            ("skew", 1 <= self.skew <= 100, "from 1 to 100"),
            ("value_bytes", LEAST_BYTES <= self.value_bytes <= MOST_BYTES, f"from {LEAST_BYTES} to {MOST_BYTES}"),
        ):
            if not is_valid:
                raise ValueError(f"{name} is {getattr(self, name)}: must be {allowed}")


class Stream:
    """The keys of a worker's events, one after another.

    Attributes:
        position: the number of the next event, from 0.
        keys: the number of keys so far.
    """

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._random = random.Random(f"{workload.seed}/{workload.worker}")
        self.position, self.keys = 0, workload.keys

    def take(self, count: int) -> list[int]:
        """Returns the keys of the next ``count`` events."""
        draw, new, skew = self._random.random, self._workload.new_share, self._workload.skew
        scale, total, taken = 1 / (1 - new), self.keys, []
        for _ in range(count):
            drawn = draw()
            if drawn < new:
                taken.append(total)
                total += 1
            else:  # at least 0, because the quotient may round up to 1
                taken.append(max(0, total - 1 - int(total * ((drawn - new) * scale) ** skew)))
        self.keys = total
        self.position += count
        return taken

    def skip(self, count: int) -> None:
        """Leaves out the next ``count`` events."""
        while count > 0:
            self.take(min(count, _REPLAYED_AT_ONCE))
            count -= _REPLAYED_AT_ONCE


def first_digest(key: int) -> int:
    """Returns the digest of a key without events."""
    return (key * _MULTIPLIER + _INCREMENT) & _MASK


def next_digest(digest: int, event: int) -> int:
    """Returns the digest after the event with this number. The order of events matters."""
    return (digest * _MULTIPLIER + event + 1) & _MASK


def encode(key: int, count: int, digest: int, size: int) -> bytes:
    """Returns the stored value of a key's state: ``size`` bytes."""
    begin = digest % MOST_BYTES
    body = _HEADER.pack(key, count, digest) + _FILLER[begin : begin + size - LEAST_BYTES]
    return body + _CHECKSUM.pack(zlib.crc32(body))


def decode(key: int, value: bytes) -> tuple[int, int]:
    """Returns the count and the digest of a stored value.

    Raises:
        DamageError: the value is torn, or belongs to another key.
    """
    body = value[: -_CHECKSUM.size]
    if len(value) < LEAST_BYTES or _CHECKSUM.pack(zlib.crc32(body)) != value[-_CHECKSUM.size :]:
        raise DamageError(f"the value of key {key} is torn: its checksum does not match")
    stored_key, count, digest = _HEADER.unpack_from(value)
    if stored_key != key:
        raise DamageError(f"the value of key {key} belongs to key {stored_key}")
    return count, digest


def initial(workload: Workload) -> Iterator[tuple[int, bytes]]:
    """Yields keys and values before the first event."""
    for key in range(workload.keys):
        yield key, encode(key, 0, first_digest(key), workload.value_bytes)


@dataclass
class Expected:
    """The state of all keys after some events: 12 bytes for each key.

    Attributes:
        counts: events by key.
        digests: by key.
    """

    counts: array[int]
    digests: array[int]


def replay(workload: Workload, events: int) -> Expected:
    """Computes the state after the first ``events`` events. It takes about a microsecond for each."""
    counts = array("I", bytes(4 * workload.keys))
    digests = array("Q", map(first_digest, range(workload.keys)))
    stream = Stream(workload)
    while stream.position < events:
        number = stream.position
        for key in stream.take(min(_REPLAYED_AT_ONCE, events - number)):
            if key == len(counts):
                counts.append(0)
                digests.append(first_digest(key))
            counts[key] += 1
            digests[key] = next_digest(digests[key], number)
            number += 1
    return Expected(counts, digests)


SHOWN = 5
"""The number of damaged keys that a verdict describes."""


@dataclass
class Verdict:
    """The counts of a verifier for the values of one worker.

    Attributes:
        verified: the number of keys with the expected value.
        damage: the number of other keys, by kind: ``missing``, ``unknown``, ``torn``, ``lost`` (too few events),
            ``doubled`` (too many events) and ``different`` (as many events, but not the same).
        examples: sentences about the first of them.
    """

    verified: int = 0
    damage: dict[str, int] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)

    @property
    def is_intact(self) -> bool:
        return not self.damage

    def reject(self, kind: str, example: str) -> None:
        self.damage[kind] = self.damage.get(kind, 0) + 1
        if len(self.examples) < SHOWN:
            self.examples.append(f"{kind}: {example}")


def judge(expected: Expected, rows: Iterable[tuple[int, bytes]], size: int) -> Verdict:
    """Compares all stored values with the expected state.

    Args:
        rows: keys and values, in ascending order of the keys.
        size: of each value in bytes.
    """
    verdict, total = Verdict(), len(expected.counts)
    due = 0
    for key, value in rows:
        for absent in range(due, min(key, total)):
            verdict.reject("missing", f"key {absent} has no value")
        due = max(due, key + 1)
        if not 0 <= key < total:
            verdict.reject("unknown", f"no event has key {key}")
            continue
        count, digest = expected.counts[key], expected.digests[key]
        if value == encode(key, count, digest, size):
            verdict.verified += 1
        else:
            verdict.reject(*_difference(key, value, count))
    for absent in range(due, total):
        verdict.reject("missing", f"key {absent} has no value")
    return verdict


def _difference(key: int, value: bytes, count: int) -> tuple[str, str]:
    try:
        stored, _ = decode(key, value)
    except DamageError as damage:
        return "torn", str(damage)
    kind = "lost" if stored < count else "doubled" if stored > count else "different"
    return kind, f"key {key} has {stored} events, and {count} were committed"
