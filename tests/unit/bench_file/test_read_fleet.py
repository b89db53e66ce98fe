"""A standing fleet's file, where it differs from a benchmark's."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from troop.bench.problems import BadBenchmarkError
from troop.bench_file.fleet_models import FleetFileIn
from troop.bench_file.read_fleet import read_fleet
from troop.bench_file.schema import FLEET_TITLE, document

SCHEMA = jsonschema_rs.Draft202012Validator(document(FleetFileIn, FLEET_TITLE))


def a_file(**more: Any) -> dict[str, Any]:
    workers = {"count": 2, "instance_type": "c7g.large", **more}
    return {"name": "workers", "expires_after": "8h", "fleets": {"workers": workers}}


def test_on_spot_its_nodes_may_have_little_time_to_boot() -> None:
    """There is no backup that has to boot after them."""
    file = a_file(purchase="spot", boot_timeout="5m")
    assert read_fleet(file).fleet("workers").is_spot
    SCHEMA.validate(file)


@pytest.mark.parametrize("purchase", ["spot", "on-demand"])
@pytest.mark.parametrize("changes", [None, {"fleets.workers.spot_timeout": "1m"}])
def test_it_has_no_backup_on_demand(purchase: str, changes: dict[str, Any] | None) -> None:
    file = a_file(purchase=purchase, **({} if changes else {"spot_timeout": "1m"}))
    with pytest.raises(BadBenchmarkError) as refused:
        read_fleet(file, changes=changes)
    (problem,) = refused.value.problems
    assert problem.where.endswith("fleets.workers.spot_timeout")
    assert str(problem).endswith("is 1m: must be left out: a standing fleet has no backup on demand, it waits for spot")
    assert SCHEMA.is_valid(file) is (changes is not None)
