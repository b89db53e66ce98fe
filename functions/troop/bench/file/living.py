"""Models and checks the keys that keep the nodes of a standing fleet at work: health, work, heal, scale and queue."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator

from troop.bench.definition.keys import FILE, NotAllowedError, written
from troop.bench.definition.living import RESTART, Heal, Health, Queue, Scale, Work
from troop.bench.definition.problems import Place, Problem
from troop.bench.file.fields import described, model_of, plain_values


class HealthIn(model_of(Health)):  # type: ignore[misc]
    """Where each node answers how it is, with the document of Troop's own `/health`. The agent asks on the node."""

    def build(self) -> Health:
        return Health(**plain_values(Health, self))


class WorkIn(model_of(Work)):  # type: ignore[misc]
    """The least work of each node. Time in which the queue is empty does not count."""

    def build(self) -> Work:
        return Work(**plain_values(Work, self))


class HealIn(model_of(Heal)):  # type: ignore[misc]
    """What Troop does with a node whose checks fail."""

    script: Annotated[str | None, FILE] = described(
        FILE,
        "A script in this folder that restarts the application on the node, as setup runs",
        "Only with `do: restart`, which needs it.",
        default=None,
    )

    def build(self) -> Heal:
        return Heal(**plain_values(Heal, self), script=self.script)


class ScaleIn(model_of(Scale)):  # type: ignore[misc]
    """How the number of nodes follows the backlog of the queue. `count` is their number at the start."""

    def build(self) -> Scale:
        return Scale(**plain_values(Scale, self))


class QueueIn(model_of(Queue)):  # type: ignore[misc]
    """The queue of the fleet's tasks, with a queue of dead letters."""

    def build(self) -> Queue:
        return Queue(**plain_values(Queue, self))


_QUEUE = "true, false, or a mapping with lease and tries"


def _switch(value: Any) -> Any:
    if isinstance(value, bool):
        return {} if value else None
    if value is None or isinstance(value, (Mapping, QueueIn)):
        return value
    raise NotAllowedError(_QUEUE)


def _with_booleans(schema: dict[str, Any]) -> None:
    schema["anyOf"].append({"type": "boolean"})


HEALTH = described(
    "a mapping with port, path, every, timeout and grace", "Where each node answers how it is", default=None
)
WORK = described(
    "a mapping with at_least and every",
    "Least work of each node, so that a node that hangs is noticed",
    "Needs `queue` or `health`, which count the work.",
    default=None,
)
HEAL = described(
    "a mapping with after, do, script and at_most",
    "Repair of nodes whose checks fail",
    "By default nothing repairs them. Needs `health` or `work`.",
    default=None,
)
SCALE = described(
    "a mapping with backlog_per_node, min, max and idle_after",
    "How their number follows the backlog",
    "Needs `queue`. Each role counts the whole backlog of the fleet.",
    default=None,
)
QUEUE = described(
    _QUEUE,
    "Whether the fleet has a queue of tasks",
    "The setting `troop:queues` must allow it.",
    default=None,
    json_schema_extra=_with_booleans,
)
QueueOrTrue = Annotated[QueueIn | None, BeforeValidator(_switch)]

ONLY_IN_FLEETS = {
    key: f"left out: only standing fleets have {key} (`troop fleet`)"
    for key in ("health", "work", "heal", "scale", "backup", "resizable")
}
"""Keys of a role that a benchmark's file cannot have, each with what to do about it."""


def problems(place: Place, fleet: Any) -> Iterator[Problem]:
    """Lists contradictions between the values of one role.

    Args:
        fleet: the model of the role.
    """
    health, heal, scale = fleet.health, fleet.heal, fleet.scale
    if health and health.timeout >= health.every:
        allowed = f"less than {written(health.every)}, its every"
        yield Problem((*place, "health", "timeout"), f"is {written(health.timeout)}", allowed)
    if heal:
        yield from _heal((*place, "heal"), heal)
        if not health and not fleet.work:
            allowed = "left out without health and work: nothing says which nodes need a repair"
            yield Problem((*place, "heal"), "is set", allowed)
    if scale:
        if fleet.resizable is False:
            yield Problem((*place, "scale"), "is set", "left out with resizable: false")
        if scale.most < scale.least:
            yield Problem((*place, "scale", "max"), f"is {scale.most}", f"at least {scale.least}, its min")
        elif not scale.least <= fleet.count <= scale.most:
            allowed = f"from {scale.least} to {scale.most}, the min and max of its scale"
            yield Problem((*place, "count"), f"is {fleet.count}", allowed)
    elif fleet.count < 1:
        allowed = "at least 1, or 0 with a `scale` whose `min` is 0"
        yield Problem((*place, "count"), f"is {fleet.count}", allowed)


def _heal(place: Place, heal: HealIn) -> Iterator[Problem]:
    if heal.do == RESTART and heal.script is None:
        yield Problem((*place, "script"), "is missing", "set with do: restart: the script that restarts")
    if heal.do != RESTART and heal.script is not None:
        yield Problem((*place, "script"), f"is {heal.script!r}", f"left out with do: {heal.do}")


def file_problems(file: Any, files: Collection[str] | None) -> Iterator[Problem]:
    """Lists contradictions between these keys and the rest of a standing fleet's file.

    Args:
        file: the model of the file.
        files: names of the files in the fleet's folder; None if unknown.
    """
    for role, fleet in file.fleets.items():
        place: Place = ("fleets", role)
        if fleet.work and not file.queue and not fleet.health:
            allowed = "left out without queue and health: nothing counts the work"
            yield Problem((*place, "work"), "is set", allowed)
        if fleet.scale and not file.queue:
            allowed = "left out without a queue (`queue: true`), whose backlog it follows"
            yield Problem((*place, "scale"), "is set", allowed)
        if fleet.scale and file.ranks:
            allowed = "left out with ranks: nodes with ranks are parts of a whole, and keep their number"
            yield Problem((*place, "scale"), "is set", allowed)
        script = fleet.heal.script if fleet.heal else None
        if script is not None and files is not None and script not in files:
            there = ", ".join(sorted(files)) or "none"
            yield Problem((*place, "heal", "script"), f"is {script!r}", f"a file in the fleet's folder: {there}")
