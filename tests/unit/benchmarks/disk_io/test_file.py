"""The file of disk-io: in each cell of each size, the fleet has the volumes that the scripts expect."""

from __future__ import annotations

from typing import Any

import pytest

from cli.shared import yaml_files
from tests.unit.benchmarks.scripts import folder, scripts
from troop.bench.file.read import read_all
from troop.disks.layout import layout_of

FOLDER = folder("disk-io")
load = scripts("disk-io")["load"]
FILES = [path.name for path in FOLDER.iterdir()]
SIZES = [None, "smoke", "local", "caches", "study", "iozone"]
MEMORY = 64 * 1024**3
VOLUMES = {"root": 0, "ebs": 1, "instance-store": 0, "instance-store-raid0": 0}


def cells(size: str | None) -> Any:
    document = yaml_files.parse(yaml_files.read(FOLDER / "benchmark.yaml"), "benchmark.yaml")
    return read_all(document, FILES, size).plan.cells


@pytest.mark.parametrize("size", SIZES)
def test_each_cell_has_the_volumes_of_its_layout(size: str | None) -> None:
    for cell in cells(size):
        layout = layout_of(cell.benchmark.parameters)
        (fleet,) = cell.benchmark.fleets
        assert len(fleet.volumes) == VOLUMES.get(layout.kind, layout.volumes), cell.variant


@pytest.mark.parametrize("size", SIZES)
def test_each_point_is_a_load_that_fits_on_the_volumes(size: str | None) -> None:
    for cell in cells(size):
        parameters = cell.benchmark.parameters
        (fleet,) = cell.benchmark.fleets
        layout = layout_of(parameters)
        for point in cell.benchmark.phase("measure").points:
            one = load.from_parameters({**parameters, **point.parameters}, MEMORY)
        gib = sum(volume.size_gib for volume in fleet.volumes) or 300  # an instance-store disk
        if layout.kind == "root" and size != "local":
            gib = layout.origin_gib if layout.cached else fleet.root_volume_gib
            assert gib <= fleet.root_volume_gib
        load.check_space(one, gib * 1024**3, gib * 1024**3)


def test_the_size_with_caches_has_each_cache_on_each_layout() -> None:
    assert len({(cell.variant.scale, cell.benchmark.parameters["cache"]) for cell in cells("caches")}) == 6 * 5
