"""The keys that keep the nodes of a standing fleet at work, and contradictions between them."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import jsonschema_rs
import pytest

from tests.unit.bench.file import documents
from troop.bench.definition.definition import from_document, to_document
from troop.bench.definition.living import Heal, Health, Queue, Scale, Work
from troop.bench.definition.problems import BadBenchmarkError
from troop.bench.file.fleet_models import FleetFileIn
from troop.bench.file.read_fleet import read_fleet
from troop.bench.file.schema import FLEET_TITLE, document

SCHEMA = jsonschema_rs.Draft202012Validator(document(FleetFileIn, FLEET_TITLE))

HEALTH, SCALE = {"port": 8080}, {"backlog_per_node": 20, "min": 0, "max": 500}
RESTART = {"do": "restart", "script": "restart.sh"}


def a_file(whole: dict[str, Any] | None = None, **role: Any) -> dict[str, Any]:
    workers = {"count": 2, "instance_type": "c7g.large", **role}
    return {"name": "workers", "expires_after": "168h", "fleets": {"workers": workers}, **(whole or {})}


def problems_of(file: dict[str, Any], files: tuple[str, ...] | None = ("restart.sh",)) -> list[str]:
    try:
        read_fleet(file, files)
    except BadBenchmarkError as bad:
        return [str(problem) for problem in bad.problems]
    return []


def test_a_fleet_that_works_is_stored_as_its_file_says() -> None:
    keys = {"every": "30s", "timeout": "5s", "grace": "0s", "path": "/status?deep=1"}
    file = a_file(
        {"queue": {"lease": "10m"}},
        health=HEALTH | keys,
        work={"at_least": 3, "every": "5m"},
        heal=RESTART | {"after": 5, "at_most": 0.25},
        scale=SCALE | {"idle_after": "30m"},
    )
    SCHEMA.validate(file)
    fleet = read_fleet(file, ["restart.sh"])
    (workers,) = fleet.fleets
    assert fleet.queue == Queue(600)
    assert workers.health == Health(8080, "/status?deep=1", 30, 5, 0)
    assert workers.work == Work(3, 300)
    assert workers.heal == Heal(5, "restart", "restart.sh", Decimal("0.25"))
    assert workers.scale == Scale(20, 0, 500, 1800)
    assert from_document(json.loads(json.dumps(to_document(fleet)))) == fleet


def test_a_fleet_without_these_keys_is_stored_as_before() -> None:
    stored = to_document(read_fleet(a_file()))
    assert not {"queue"} & set(stored)
    assert not {"health", "work", "heal", "scale"} & set(stored["fleets"]["workers"])


@pytest.mark.parametrize(("value", "queue"), [(True, Queue()), (False, None), (None, None), ({}, Queue())])
def test_a_queue_is_switched_on_or_described(value: Any, queue: Queue | None) -> None:
    file = a_file({"queue": value})
    SCHEMA.validate(file)
    fleet = read_fleet(file)
    assert fleet.queue == queue
    assert fleet.watched_roles == (("workers",) if queue else ()), "a spot notice must reach its workers"


def test_only_roles_with_a_key_of_their_own_are_watched_without_a_queue() -> None:
    file = a_file(health=HEALTH)
    file["fleets"]["others"] = {"count": 1, "instance_type": "c7g.large"}
    assert read_fleet(file).watched_roles == ("workers",)


_WITHOUT = "must be left out without"


@pytest.mark.parametrize(
    ("whole", "role", "problem"),
    [
        ({"queue": "yes"}, {}, "queue is 'yes': must be true, false, or a mapping with lease and tries"),
        ({"queue": {"lease": "10s"}}, {}, "queue.lease is '10s': must be a duration from 30s to 2h"),
        ({"queue": {"tries": 0}}, {}, "queue.tries is 0: must be a whole number from 1 to 100"),
        ({"queue": {"trys": 3}}, {}, "queue.trys is not known: must be spelled tries"),
        ({}, {"health": {}}, "fleets.workers.health.port is missing: must be set (TCP port"),
        ({}, {"health": HEALTH | {"path": "health"}}, "fleets.workers.health.path is 'health': must be a path"),
        ({}, {"health": HEALTH | {"timeout": "10s"}}, "fleets.workers.health.timeout is 10s: must be less than 10s"),
        ({}, {"health": HEALTH | {"every": "1s"}}, "fleets.workers.health.every is '1s': must be a duration from 5s"),
        ({}, {"work": {"at_least": 1, "every": "5m"}}, f"fleets.workers.work is set: {_WITHOUT} queue and health"),
        ({}, {"heal": {}}, f"fleets.workers.heal is set: {_WITHOUT} health and work"),
        ({"queue": True}, {"heal": {}}, f"fleets.workers.heal is set: {_WITHOUT} health and work"),
        ({}, {"health": HEALTH, "heal": {"do": "restart"}}, "fleets.workers.heal.script is missing: must be set"),
        (
            {},
            {"health": HEALTH, "heal": {"script": "restart.sh"}},
            "fleets.workers.heal.script is 'restart.sh': must be left out with do: replace",
        ),
        (
            {},
            {"health": HEALTH, "heal": RESTART | {"script": "other.sh"}},
            "fleets.workers.heal.script is 'other.sh': must be a file in the fleet's folder: restart.sh",
        ),
        (
            {},
            {"health": HEALTH, "heal": {"at_most": 0}},
            "fleets.workers.heal.at_most is 0: must be a number from 0.01",
        ),
        ({}, {"scale": SCALE}, f"fleets.workers.scale is set: {_WITHOUT} a queue"),
        (
            {"queue": True, "ranks": True},
            {"scale": SCALE},
            "fleets.workers.scale is set: must be left out with ranks",
        ),
        (
            {"queue": True},
            {"scale": SCALE, "resizable": False},
            "fleets.workers.scale is set: must be left out with resizable: false",
        ),
        (
            {"queue": True},
            {"scale": SCALE | {"min": 3, "max": 2}},
            "fleets.workers.scale.max is 2: must be at least 3, its min",
        ),
        ({"queue": True}, {"count": 0}, "fleets.workers.count is 0: must be at least 1, or 0 with a `scale`"),
        ({"queue": True}, {"count": -1}, "fleets.workers.count is -1: must be a whole number from 0 to 10000"),
        (
            {"queue": True},
            {"count": 0, "scale": SCALE | {"min": 1}},
            "fleets.workers.count is 0: must be from 1 to 500",
        ),
        (
            {"queue": True},
            {"scale": SCALE | {"max": 2}, "zones": 3},
            "fleets.workers.zones is 3: must be at most 2, which is its scale.max",
        ),
        ({"queue": True}, {"scale": SCALE | {"max": 1}}, "fleets.workers.count is 2: must be from 0 to 1"),
        ({"queue": True}, {"scale": SCALE | {"min": 3}}, "fleets.workers.count is 2: must be from 3 to 500"),
        (
            {"queue": True},
            {"scale": SCALE, "placement": "spread"},
            "fleets.workers.placement is 'spread' for 500 nodes: must be with a scale.max of at most 7",
        ),
        ({"expires_after": "169h"}, {}, "expires_after is '169h': must be a duration from 10m to 168h"),
    ],
)
def test_a_contradiction_has_a_place_and_says_what_is_allowed(
    whole: dict[str, Any], role: dict[str, Any], problem: str
) -> None:
    (only,) = problems_of(a_file(whole, **role))
    assert only.startswith(problem)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_role_that_scales_may_start_with_fewer_nodes_than_zones(count: int) -> None:
    file = a_file({"queue": True}, scale=SCALE, count=count, zones=3)
    SCHEMA.validate(file)
    assert problems_of(file) == []
    assert read_fleet(file).fleets[0].count == count


def test_nodes_with_ranks_may_have_a_queue() -> None:
    assert problems_of(a_file({"queue": True, "ranks": True})) == []


def test_the_script_of_a_repair_is_not_looked_for_without_the_folder() -> None:
    assert problems_of(a_file(health=HEALTH, heal=RESTART), files=None) == []


def test_a_change_of_one_value_is_checked_at_its_place() -> None:
    with pytest.raises(BadBenchmarkError) as refused:
        read_fleet(a_file({"queue": True}, scale=SCALE), changes={"fleets.workers.scale.max": 1})
    (problem,) = refused.value.problems
    assert str(problem).startswith("set.fleets.workers.count") or "count is 2" in str(problem)


@pytest.mark.parametrize("key", ["health", "work", "heal", "scale", "backup", "resizable"])
def test_the_role_of_a_benchmark_refuses_the_keys_of_fleets_with_the_reason(key: str) -> None:
    (problem,) = documents.problems(documents.changed(**{f"fleets__drivers__{key}": {}}))
    assert str(problem) == (
        f"fleets.drivers.{key} is set: must be left out: only standing fleets have {key} (`troop fleet`)"
    )


def test_a_benchmark_has_no_queue() -> None:
    (problem,) = documents.problems(documents.changed(queue=True))
    assert str(problem).startswith("queue is set: must be left out: only standing fleets have a queue")
