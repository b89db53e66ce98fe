"""Benchmarks, rosters and what was seen of them, for tests of the core."""

from __future__ import annotations

from troop.bench.definition.definition import Benchmark, Fleet, Phase, Step
from troop.bench.definition.roster import Node, make_roster
from troop.bench.fleets.booting import FleetStatus

DRIVERS = Fleet("drivers", 3, "c5.large", 1, 300, 8)
SERVERS = Fleet("servers", 2, "c7g.large", 2, 600, 8)
PREPARE = Phase("prepare", ("servers", "drivers"), "prepare.sh", 600)
MEASURE = Phase("measure", ("drivers",), "read.py", 600, start_together=True, warm_up=30, measured=300)

BENCHMARK = Benchmark("ranges", "", 7200, (SERVERS, DRIVERS), (PREPARE, MEASURE), {})

NODES = {
    **{f"i-d{n}": Node(f"i-d{n}", "drivers", "a", f"10.0.0.{n}", "c5.large") for n in range(3)},
    **{f"i-s{n}": Node(f"i-s{n}", "servers", "ab"[n], f"10.0.1.{n}", "c7g.large") for n in range(2)},
}
ALL = frozenset(NODES)
DRIVER_IDS = frozenset(i for i in NODES if i.startswith("i-d"))
ROSTER = make_roster(list(NODES.values()))

SEEN = (FleetStatus("drivers", DRIVER_IDS), FleetStatus("servers", ALL - DRIVER_IDS))


def step(phase: Phase) -> Step:
    """A phase that runs once."""
    return Step(phase, phase.name)
