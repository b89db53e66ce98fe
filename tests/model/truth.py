"""What truly happened to groups and alarms, whatever a function has read of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tests.model.alarms import Alarm, Change, CloudWatch
from tests.model.fleet import Fleet

EXISTS_NOT, RECONFIGURED = "missing", "reconfigured"
"""What an alarm was beside its states."""


@dataclass
class Loss:
    """A group since one of its instances was claimed.

    Attributes:
        needed: its desired capacity at the claim.
        changes: from when on it was whole, or was not.
        is_lasting: whether its fault lasts: then the instance serves only after the proof, or has to end.
        stays: whether the instance may serve again: its fault is proven to be over.
    """

    group: str
    instance_id: str
    needed: int
    changes: list[tuple[float, bool]] = field(default_factory=list)
    is_lasting: bool = False
    stays: bool = False

    def update(self, fleet: Fleet, now: float) -> None:
        group = fleet.groups.get(self.group)
        serving = group.serving if group else []
        whole = (
            group is not None
            and sum(one.weight for one in serving) >= min(self.needed, group.desired)
            and (self.stays or all(one.instance_id != self.instance_id for one in serving))
            and (self.stays or not (self.is_lasting and self._lives(fleet)))
        )
        if not self.changes or self.changes[-1][1] != whole:
            self.changes.append((now, whole))

    def _lives(self, fleet: Fleet) -> bool:
        instance = fleet.instances.get(self.instance_id)
        return instance is not None and instance.state != "terminated"

    def was_whole(self, since: float, until: float) -> bool:
        """Whether it was whole at a moment from ``since`` to ``until``."""
        return any(begin <= until and end >= since for begin, end in self._spans())

    def rise(self, until: float) -> float | None:
        """Returns when it became whole for the last time up to a moment; None if it never did."""
        return max((begin for begin, _ in self._spans() if begin <= until), default=None)

    def _spans(self) -> Iterator[tuple[float, float]]:
        ends = [at for at, _ in self.changes[1:]] + [float("inf")]
        return ((begin, end) for (begin, whole), end in zip(self.changes, ends, strict=True) if whole)


class Losses:
    """The losses of all claims, followed as long as somebody asks for them."""

    def __init__(self) -> None:
        self.by_event: dict[str, Loss] = {}
        self._followed: dict[str, list[Loss]] = {}

    def follow(self, event_id: str, loss: Loss, fleet: Fleet, now: float) -> None:
        self.by_event[event_id] = loss
        self._followed.setdefault(loss.group, []).append(loss)
        loss.update(fleet, now)

    def update(self, group: str, fleet: Fleet, now: float) -> None:
        """Follows a change in a group; "" for one of an instance that has left its own."""
        for loss in self._followed.get(group, ()) if group else self.by_event.values():
            loss.update(fleet, now)


def lived(cloudwatch: CloudWatch, name: str, since: float, until: float) -> set[str]:
    """Returns everything that an alarm was from ``since`` to ``until``: its states; whether it did not exist; whether
    it was created, changed or deleted.
    """
    before, seen = EXISTS_NOT, set[str]()
    for change in _changes(cloudwatch.history, name):
        if change.at > until:
            break
        if change.at >= since:
            seen |= {before, RECONFIGURED} if change.is_configuration else {before}
        before = change.state or EXISTS_NOT
    return seen | {before}


def changed_since(cloudwatch: CloudWatch, names: Iterable[str], moment: float) -> bool:
    """Checks whether an alarm, or one below it, was created, changed or deleted after a moment."""
    every = {one for name in names for one in family(cloudwatch, name)}
    return any(one.is_configuration and one.at > moment and one.name in every for one in cloudwatch.history)


def settle(cloudwatch: CloudWatch, names: Iterable[str]) -> float:
    """Returns the seconds that alarms need to go off."""
    alarms = [one for name in names for one in _metrics(cloudwatch, name)]
    return max((alarm.period * alarm.periods for alarm in alarms), default=0)


def family(cloudwatch: CloudWatch, name: str) -> set[str]:
    """Returns an alarm and all alarms below it, by name."""
    alarm = cloudwatch.alarms.get(name)
    return {name}.union(*(family(cloudwatch, child) for child in (alarm.children if alarm else ())))


def _metrics(cloudwatch: CloudWatch, name: str) -> list[Alarm]:
    alarms = [cloudwatch.alarms.get(one) for one in sorted(family(cloudwatch, name))]
    return [alarm for alarm in alarms if alarm and not alarm.children]


def _changes(history: Iterable[Change], name: str) -> Iterator[Change]:
    return (change for change in history if change.name == name)
