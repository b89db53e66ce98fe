"""docs/metrics.md says of every metric what there is to say, and the queries in it are those that are saved."""

from __future__ import annotations

import re

from infra import ROOT
from infra.queries import QUERIES
from tests.infra.test_dashboards import SECOND
from troop.chaos.guards import REASONS
from troop.chaos.metrics import DIMENSION, NAMESPACE, Metric, Repair

DOCUMENT = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
ROWS = {
    cells[0].strip("` "): [cell.strip() for cell in cells]
    for line in DOCUMENT.partition("## Metrics of AWS")[0].splitlines()
    if line.startswith("| `") and (cells := line.strip("|").split("|"))
}


def test_every_metric_is_documented_and_no_other() -> None:
    assert set(ROWS) == {metric.value for metric in Metric}
    assert f"Namespace `{NAMESPACE}`" in DOCUMENT
    assert f"the dimension `{DIMENSION}`" in DOCUMENT
    assert all(len(cells) == 5 and all(cells[2:]) for cells in ROWS.values()), "by whom, when, what for"


def test_its_second_dimension_is_the_one_that_it_has() -> None:
    told = {name: re.match(r"`(\w+)`", cells[1]) for name, cells in ROWS.items()}
    assert {name: found[1] for name, found in told.items() if found} == {m.value: d for m, d in SECOND.items()}


def test_values_that_it_names_are_all_there_are() -> None:
    assert set(re.findall(r"`([a-z-]+)`", ROWS["Repairs"][4])) == {repair.value for repair in Repair}
    most = re.search(r"at most (\d+)", ROWS["Decisions"][1])
    assert most
    assert int(most[1]) >= len(REASONS)


def test_the_queries_in_it_are_saved() -> None:
    saved = {query.title: [line for line in query.lines if not line.startswith("#")] for query in QUERIES}
    for title in ("All of a tick or an event", "All of a run"):
        (block,) = re.findall(rf"```\n# {title}\n(.*?)\n```", DOCUMENT, re.DOTALL)
        assert block.splitlines() == saved[title]
