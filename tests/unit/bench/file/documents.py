"""A benchmark's file to change, and files of all kinds."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import strategies as st

from troop.bench.definition.definition import Benchmark
from troop.bench.definition.problems import BadBenchmarkError, Problem
from troop.bench.file.read import read_all

FILE: dict[str, Any] = {
    "name": "reads",
    "expires_after": "2h",
    "fleets": {
        "servers": {
            "count": 3,
            "instance_type": "m7g.large",
            "zones": 3,
            "volumes": [{"device": "/dev/sdf", "size_gib": 100}],
        },
        "drivers": {"count": 2, "instance_type": "c7g.large"},
    },
    "phases": [
        {"name": "prepare", "roles": ["servers", "drivers"], "script": "prepare.sh", "timeout": "10m"},
        {
            "name": "measure",
            "roles": ["drivers"],
            "script": "read.py",
            "start_together": True,
            "warm_up": "30s",
            "measured": "5m",
            "timeout": "10m",
        },
    ],
    "parameters": {"bucket": "my-data", "threads": 32, "sizes": [1024, 10240]},
    "artifacts": [{"name": "data.tar.gz", "source": "./data.tar.gz", "sha256": "0f" * 32}],
    "buckets": ["my-data"],
    "sizes": {
        "smoke": {"fleets.drivers.count": 1, "phases.measure.measured": "5s", "parameters.threads": 4},
    },
}
FILES = ("prepare.sh", "read.py")


def changed(**changes: Any) -> dict[str, Any]:
    """The file with values put in by keys, parted by two underscores; numbers are positions, ... removes a key."""
    document = copy.deepcopy(FILE)
    for key, value in changes.items():
        *way, last = (int(step) if step.isdigit() else step for step in key.split("__"))
        inner: Any = document
        for step in way:
            inner = inner[step]
        if value is ...:
            del inner[last]
        else:
            inner[last] = value
    return document


def read(document: Any, *how: Any, **more: Any) -> Benchmark:
    """The benchmark alone, as ``read_all`` reads it."""
    return read_all(document, *how, **more).benchmark


def problems(document: Any, **how: Any) -> list[Problem]:
    """What is wrong with a file, and it must be something."""
    with pytest.raises(BadBenchmarkError) as bad:
        read(document, **how)
    return list(bad.value.problems)


_NAMES = st.sampled_from(["a", "b-1", "drivers", "servers", "x9"])
_SCALARS = st.text("ab {}é", max_size=5) | st.booleans() | st.integers(-9, 9) | st.floats(-1, 1)
_MINUTES = st.integers(1, 9).flatmap(
    lambda n: st.sampled_from([f"{n}m", f"{n} m", n * 60, float(n * 60), f"{n * 60}s"])
)


@st.composite
def files(draw: st.DrawFn) -> dict[str, Any]:
    """Files that are right, with and without what may be left out."""
    optional = st.fixed_dictionaries
    roles = draw(st.lists(_NAMES, min_size=1, max_size=3, unique=True))
    fleet = optional(
        {"count": st.integers(1, 9), "instance_type": st.sampled_from(["c7g.large", "u-6tb1.metal"])},
        optional={
            "zones": st.just(1),
            "boot_timeout": st.sampled_from(["9m", 570, "10 m"]),
            "root_volume_gib": st.integers(8, 20),
            "purchase": st.sampled_from(["on-demand", "spot"]),
            "volumes": st.lists(_volumes(), max_size=3, unique_by=lambda volume: volume["device"]),
            "load": st.booleans(),
            "license_fee": st.sampled_from([0, 0.35, 2]),
        },
    )
    phase = optional(
        {
            "name": _NAMES,
            "roles": st.lists(st.sampled_from(roles), min_size=1, unique=True),
            "script": st.sampled_from(FILES),
            "timeout": st.sampled_from(["10m", 600, 700.0]),
        },
        optional={"start_together": st.booleans(), "measured": _MINUTES},
    )
    document = {
        "name": draw(_NAMES),
        "expires_after": draw(st.sampled_from(["1h", "24h", 3600])),
        "fleets": {role: draw(fleet) for role in roles},
        "phases": draw(st.lists(phase, min_size=1, max_size=3, unique_by=lambda phase: phase["name"])),
    }
    more = {
        "description": st.text("ab\n", max_size=9),
        "parameters": st.dictionaries(st.sampled_from(["p", "q_1"]), _SCALARS | st.lists(_SCALARS, max_size=3)),
        "attempts": st.integers(1, 5),
        "buckets": st.lists(st.sampled_from(["my-data", "other.data"]), unique=True),
        "artifacts": st.lists(
            optional({"name": _NAMES, "sha256": st.just("0f" * 32), "source": st.sampled_from(["x", "s3://abc/d"])}),
            max_size=2,
            unique_by=lambda artifact: artifact["name"],
        ),
    }
    return document | draw(st.fixed_dictionaries({}, optional=more | _money()))


def _money() -> dict[str, st.SearchStrategy[Any]]:
    amounts = st.integers(0, 999) | st.floats(0, 999).map(lambda amount: round(amount, 4))
    committed = amounts | st.fixed_dictionaries({"upfront": amounts, "hourly": amounts})
    both = st.fixed_dictionaries({"on_demand": amounts}, optional={"spot": amounts, "1y": committed, "3y": committed})
    return {
        "budget": amounts,
        "billing": st.sampled_from(["per-second", "hourly"]),
        "prices": st.fixed_dictionaries({}, optional={"c7g.large": amounts | both, "gp3": amounts}),
        "accept_unknown_prices": st.booleans(),
        "traffic": st.fixed_dictionaries({}, optional=dict.fromkeys(("cross_zone_gb", "s3_gets", "s3_puts"), amounts)),
    }


def _volumes() -> st.SearchStrategy[dict[str, Any]]:
    common = {"device": st.sampled_from(["/dev/sdf", "/dev/sdg", "/dev/sdp"]), "size_gib": st.integers(8, 100)}
    gp3 = st.fixed_dictionaries(
        common, optional={"type": st.just("gp3"), "iops": st.integers(3000, 4000), "throughput_mib": st.just(125)}
    )
    provisioned = st.fixed_dictionaries(
        {**common, "type": st.sampled_from(["io1", "io2"]), "iops": st.integers(100, 400)}
    )
    by_size = st.fixed_dictionaries(
        {**common, "size_gib": st.just(125), "type": st.sampled_from(["gp2", "st1", "sc1"])}
    )
    return gp3 | provisioned | by_size
