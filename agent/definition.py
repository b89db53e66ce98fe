"""Reads the parts of a benchmark that a node needs: its phases, parameters, files and artifacts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from agent.errors import UNREADABLE, AgentError
from troop.measure.summary_size import TARGET_BYTES

FORMAT = "troop.benchmark/1"
READ = "read"
"""The initialization of a volume by reading it whole."""
FAIL_AFTER = 3
"""Failures in a row of which people are notified, of a role that is not healed."""


@dataclass(frozen=True)
class Setup:
    """A setup phase of a standing fleet: its name, and a file from the benchmark's folder."""

    phase: str
    script: str
    timeout_seconds: float


@dataclass(frozen=True)
class Health:
    """Where the application of a standing fleet's node answers for its health; durations in seconds.

    Attributes:
        grace: the time after the node is ready in which failures do not count.
    """

    port: int
    path: str
    every: float
    timeout: float
    grace: float


@dataclass(frozen=True)
class Work:
    """The work that a node must do in each so many seconds, as its counter shows."""

    at_least: float
    every: float


@dataclass(frozen=True)
class Definition:
    """The benchmark for one role.

    Attributes:
        steps: names of the phases and points in order, only those of the role; empty for a standing fleet.
        faults: methods of the planned faults that may hit nodes of the role, by the name of the step. The role waits
            for these steps, too, but does not run their script.
        parameters: for scripts, unchanged.
        files: names of files in the benchmark's folder.
        artifacts: SHA-256 by name.
        standing: whether the node does not wait for others, but sets itself up and stays.
        setup: the phases that such a node runs.
        queue: whether the fleet has a queue of tasks.
        restart: the script that restarts the application; None for none.
        fail_after: failed requests for its health in a row from which the workflow acts on them.
        ranks: whether it has a rank, for which it waits before.
        has_targets: whether the role has targets, which a further object describes.
        read_volumes: device names of the volumes that the node reads whole before it registers.
        own_data: whether scripts create objects to measure with.
        summary_bytes: the size of a summary above which data is left out.
    """

    steps: tuple[str, ...]
    parameters: Mapping[str, Any]
    files: tuple[str, ...]
    artifacts: Mapping[str, str]
    standing: bool = False
    setup: tuple[Setup, ...] = ()
    queue: bool = False
    health: Health | None = None
    work: Work | None = None
    restart: Setup | None = None
    fail_after: int = FAIL_AFTER
    ranks: bool = False
    read_volumes: tuple[str, ...] = ()
    has_targets: bool = False
    own_data: bool = False
    summary_bytes: int = TARGET_BYTES
    faults: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def methods(self) -> frozenset[str]:
        """All methods of planned faults."""
        return frozenset().union(*self.faults.values())

    @property
    def is_watched(self) -> bool:
        """Whether the node reports its health and its work."""
        return self.standing and (self.queue or self.health is not None or self.work is not None)


def read(path: Path, role: str) -> Definition:
    """Reads the accepted benchmark.

    Raises:
        AgentError: the file cannot be read or is not a benchmark.
    """
    try:
        document = json.loads(path.read_bytes())
        if document["format"] != FORMAT:
            raise ValueError(f"the format is {document['format']!r}: must be {FORMAT}")
        phases = document["phases"]
        standing = bool(document.get("standing"))
        return Definition(
            steps=() if standing else tuple(step for phase in phases for step in steps(phase, role)),
            standing=standing,
            faults={step: methods(one, role) for one in phases if methods(one, role) for step in executions(one)},
            setup=tuple(_setup(phase) for phase in phases if role in phase["roles"]) if standing else (),
            **(_watch(document, role) if standing else {}),
            ranks=bool(document.get("ranks")),
            parameters=dict(document.get("parameters") or {}),
            files=tuple(_inside(name) for name in document.get("files") or ()),
            read_volumes=_read_volumes(document, role),
            has_targets=any(role in one["roles"] for one in document.get("targets", {}).values()),
            own_data=bool(document.get("own_data")),
            summary_bytes=int(document.get("summary_bytes") or TARGET_BYTES),
            artifacts={_inside(one["name"]): str(one["sha256"]) for one in document.get("artifacts") or ()},
        )
    except (OSError, *UNREADABLE) as error:
        raise AgentError(f"cannot read the benchmark's definition: {error!r}") from None


def steps(phase: Mapping[str, Any], role: str) -> Iterator[str]:
    """Yields the names of a phase's steps in which a role takes part. A test compares them with
    :attr:`troop.bench.definition.definition.Benchmark.steps`.
    """
    between, takes_part = phase.get("between"), role in phase["roles"] or methods(phase, role)
    for number, name in enumerate(executions(phase), 1):
        if between and (number > 1 or phase.get("paired")) and role in between["roles"]:
            yield f"{name}.between"
        if takes_part:
            yield name


def executions(phase: Mapping[str, Any]) -> list[str]:
    """Returns the names of a phase's steps without those between two points."""
    name, number_of_points = str(phase["name"]), len(phase.get("points") or (None,)) * int(phase.get("repeat", 1))
    if phase.get("search"):
        number_of_points = _most(phase["search"])
    elif not phase.get("points") and number_of_points == 1:
        return [name]
    return [f"{name}.{number}" for number in range(1, number_of_points + 1)]


def methods(phase: Mapping[str, Any], role: str) -> frozenset[str]:
    """Returns the methods of the planned faults that may hit nodes of a role, which does not run the phase's script."""
    if role in phase["roles"]:
        return frozenset()
    faults = (one for one in phase.get("faults") or () if not one.get("unit"))
    return frozenset(str(one["method"]) for one in faults if one.get("role") in (None, role))


def _most(search: Mapping[str, Any]) -> int:
    """Returns the largest number of points of a search; the workflow skips those that it does not need."""
    values = search.get("values") or range(search["from"], search["to"] + 1, search["step"])
    return 4 + (len(values) - 2).bit_length()


def _read_volumes(document: Mapping[str, Any], role: str) -> tuple[str, ...]:
    volumes = document.get("fleets", {}).get(role, {}).get("volumes", ())
    return tuple(str(volume["device"]) for volume in volumes if volume.get("initialize") == READ)


RESTART = "restart"
"""The name of the phase in which the application is restarted."""
_RESTART_SECONDS = 600.0
"""The time limit of a restart in a fleet without a setup."""


def _watch(document: Mapping[str, Any], role: str) -> dict[str, Any]:
    """Returns how a node of a standing fleet is watched."""
    fleet = document.get("fleets", {}).get(role, {})
    health, work, heal = fleet.get("health"), fleet.get("work"), fleet.get("heal") or {}
    script = heal.get("script")
    limit = max((float(phase["timeout"]) for phase in document["phases"]), default=_RESTART_SECONDS)
    times = ("every", "timeout", "grace")
    return {
        "queue": bool(document.get("queue")),
        "health": health and Health(int(health["port"]), str(health["path"]), *(float(health[one]) for one in times)),
        "work": work and Work(float(work["at_least"]), float(work["every"])),
        "restart": script and Setup(RESTART, _inside(script), limit),
        "fail_after": int(heal.get("after") or FAIL_AFTER),
    }


def _setup(phase: Mapping[str, Any]) -> Setup:
    return Setup(str(phase["name"]), _inside(phase["script"]), float(phase["timeout"]))


def _inside(name: Any) -> str:
    """Returns a relative path that stays inside its folder."""
    path = PurePosixPath(str(name))
    if path.is_absolute() or not path.parts or ".." in path.parts:
        raise ValueError(f"{name!r} is not a valid file name")
    return str(path)
