"""metrics.md says of every metric what there is to say, and the queries in it are those that are saved."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from infra import ROOT
from infra.queries import QUERIES
from tests.infra.cfn import resources_of
from tests.infra.test_dashboards import bodies, curves, searches
from troop.chaos.guards import REASONS
from troop.shared.metrics import DIMENSION, NAMESPACE, SECOND, Metric, Repair

Template = Mapping[str, Any]

DOCUMENT = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
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
    matches = {name: re.match(r"`(\w+)`", cells[1]) for name, cells in ROWS.items()}
    assert {name: match[1] for name, match in matches.items() if match} == {m.value: d for m, d in SECOND.items()}


def test_values_that_it_names_are_all_there_are() -> None:
    assert set(re.findall(r"`([a-z-]+)`", ROWS["Repairs"][4])) == {repair.value for repair in Repair}
    most = re.search(r"at most (\d+)", ROWS["Decisions"][1])
    assert most
    assert int(most[1]) >= len(REASONS)


def test_every_metric_is_written_by_somebody() -> None:
    sources = [path for path in (ROOT / "functions").rglob("*.py") if path.name != "metrics.py" or "aws" in path.parts]
    code = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    assert [metric.name for metric in Metric if not re.search(rf"\bMetric\.{metric.name}\b", code)] == []


def test_metrics_of_aws_are_those_that_alarms_and_dashboards_name(template: Template) -> None:
    """With their dimensions: what the document says was looked up, name by name, in AWS's own."""
    entries: dict[str, tuple[set[str], set[str]]] = {}
    for line in DOCUMENT.partition("## Metrics of AWS")[2].partition("\n## ")[0].splitlines():
        if line.startswith("| `AWS/"):
            space, metric_names, dimension_names, _ = [
                re.findall(r"`([\w/]+)`", cell) for cell in line.strip("| ").split("|")
            ]
            entries[space[0]] = (set(metric_names) - {"report"}, set(dimension_names))
    named: dict[str, tuple[set[str], set[str]]] = {}
    for metric, dimensions in _named(template):
        if metric.startswith(f"{NAMESPACE}/"):
            continue
        namespace, name = metric.rsplit("/", 1)
        names, keys = named.setdefault(namespace, (set(), set()))
        names.add(name)
        keys.update(dimensions)
    assert {namespace: names for namespace, (names, _) in entries.items()} == {
        n: names for n, (names, _) in named.items()
    }
    assert not [n for n, (_, keys) in named.items() if not keys <= entries[n][1]]


def _named(template: Template) -> Iterator[tuple[str, set[str]]]:
    """(namespace and name, names of the dimensions) of all metrics in alarms and dashboards."""
    for one in resources_of(template, "AWS::CloudWatch::Alarm").values():
        alarm = one["Properties"]
        watched = [query["MetricStat"]["Metric"] for query in alarm.get("Metrics", ()) if "MetricStat" in query]
        for metric in watched or [alarm]:
            yield f"{metric['Namespace']}/{metric['MetricName']}", {d["Name"] for d in metric["Dimensions"]}
    for body in bodies(template).values():
        for name, dimensions, _ in curves(body):
            yield name, set(dimensions)
        for expression in searches(body):
            match = re.search(r"\{([\w/]+),([\w,]+)\} MetricName=\"(\w+)\"", expression)
            assert match, expression
            yield f"{match[1]}/{match[3]}", set(match[2].split(","))


def test_the_queries_in_it_are_saved() -> None:
    saved = {query.title: [line for line in query.lines if not line.startswith("#")] for query in QUERIES}
    for title in ("All of a tick or an event", "All of a run"):
        (block,) = re.findall(rf"```\n# {title}\n(.*?)\n```", DOCUMENT, re.DOTALL)
        assert block.splitlines() == saved[title]
