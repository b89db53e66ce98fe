"""Tests the files of the catalogue: each of its sizes with each other one, and changes that people make."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.bench.files import CATALOGUE, FLEETS, load, load_fleet
from cli.shared.errors import CliError
from troop.bench.admission.estimate import traffic_warnings

BENCHMARKS = sorted(path.parent for path in CATALOGUE.glob("*/benchmark.yaml"))
STANDING = sorted(path.parent for path in FLEETS.glob("*/fleet.yaml"))
ADDED = {
    "cassandra-write": ["stress"],
    "data-service": ["hdd"],
    "event-processor": ["rocksdb"],
    "http-load": ["x86", "jmeter", "locust"],
    "s3-range-read": ["own-data"],
}
"""Sizes that change only one thing, and that the READMEs add to others."""


def content(folder: Path) -> Any:
    return yaml.safe_load(next(folder.glob("*.yaml")).read_text(encoding="utf-8"))


def named(folder: Path) -> str:
    return folder.name


@pytest.mark.slow
@pytest.mark.parametrize("folder", BENCHMARKS, ids=named)
def test_two_sizes_make_a_valid_file_or_a_refusal_that_names_both(folder: Path) -> None:
    refused = {}
    for pair in permutations(content(folder)["sizes"], 2):
        try:
            load(folder, ",".join(pair))
        except CliError as error:
            refused[pair] = str(error)
    for (first, second), text in refused.items():
        for line in text.splitlines():
            assert line.startswith(f"--size is '{first},{second}': sizes.{second}"), line
    added = ADDED.get(folder.name, [])
    apart = {pair: text for pair, text in refused.items() if set(pair) & set(added)}
    assert all("the load begins so late" in text for text in apart.values()), apart


@pytest.mark.slow
@pytest.mark.parametrize("folder", BENCHMARKS, ids=named)
def test_traffic_between_zones_is_stated_for_each_cell_of_each_size(folder: Path) -> None:
    for size in (None, *content(folder)["sizes"]):
        assert [*traffic_warnings(load(folder, size).plan)] == [], size


@pytest.mark.slow
@pytest.mark.parametrize("folder", [*BENCHMARKS, *STANDING], ids=named)
def test_nodes_of_each_role_can_be_bought_in_another_way_by_one_change(folder: Path) -> None:
    load_it = load if folder in BENCHMARKS else load_fleet
    for role in content(folder)["fleets"]:
        for purchase in ("on-demand", "spot"):
            read = load_it(folder, changes={f"fleets.{role}.purchase": purchase})
            fleet = read.benchmark.fleet(role)
            assert fleet.is_spot == (purchase == "spot")
            assert fleet.is_spot or (fleet.max_price, fleet.backup) == (None, None)
