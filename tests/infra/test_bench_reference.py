"""The reference of benchmarks' files is current, and leaves out no key and no variable."""

from __future__ import annotations

import inspect
import re

import pytest
from pydantic import BaseModel

from agent.place import Place
from infra import bench_reference
from infra.bench_reference import BENCHMARK, DATA_PATH, ENVIRONMENT, FLEET, PATH, Section
from troop.bench.file.fleet_models import FleetFileIn
from troop.bench.file.models import BenchmarkIn


def test_the_pages_are_current() -> None:
    assert bench_reference.text() == PATH.read_text(encoding="utf-8"), "run: make openapi"
    variables = DATA_PATH.read_text(encoding="utf-8")
    assert bench_reference.environment(variables) == variables, "run: make openapi"


@pytest.mark.parametrize("model", [BenchmarkIn, FleetFileIn])
def test_each_part_of_a_file_has_a_section(model: type[BaseModel]) -> None:
    parts = {model.__name__, *model.model_json_schema()["$defs"]}
    assert parts <= {section.model.__name__ for section in (*BENCHMARK, *FLEET)}


def test_each_key_of_a_section_has_a_row() -> None:
    page = PATH.read_text(encoding="utf-8")
    for section in (*BENCHMARK, *FLEET):
        rows = page.partition(f"\n## {section.title}\n")[2].partition("\n## ")[0]
        for name, one in section.model.model_fields.items():
            where = page if name in section.without else rows
            assert f"| `{one.alias or name}` |" in where, (section.title, name)


def test_links_of_a_section_belong_to_its_keys() -> None:
    for section in (*BENCHMARK, *FLEET):
        assert section.links.keys() <= section.model.model_fields.keys() - section.without, section.title


def test_keys_without_a_description_are_refused() -> None:
    class Undescribed(BaseModel):
        colour: str

    with pytest.raises(TypeError, match="colour is declared without `described`"):
        bench_reference._keys(Section("Undescribed", Undescribed))


def test_the_variables_are_those_that_the_agent_sets() -> None:
    names = re.findall(r'^ +"([A-Z_]+)": ', inspect.getsource(Place.environment), re.MULTILINE)
    assert sorted(name for row in ENVIRONMENT for name in row) == sorted(names)
