"""A processor that waits for a disk is not busy: in no figure and in no sentence."""

from __future__ import annotations

from typing import Any

import pytest

from agent.sampler import Series as Sampled
from cli.bench.report_source import parsed
from tests.unit.report.sample_reports import study
from troop.bench.results import series
from troop.measure.collectors import sysstat
from troop.measure.summary import BUSIEST, SERIES, busy
from troop.report import activity, instance_limits, processors, saturation, trust
from troop.report.document import Cell, Fleet, Node, Operation, Phase, Point, Report, Scaling, Use

WAITS = {"cpu_user": 9, "cpu_system": 6, "cpu_iowait": 980, "cpu_steal": 5, BUSIEST: 20}
"""Thousandths of a node that its disk limits."""


def stored() -> dict[str, Any]:
    """A phase of results as every version of Troop has stored it."""
    node = {"rank": 0, "outcome": "ok", "count": 9, "errors": 0, "means": WAITS}
    values = {name: [WAITS.get(name, 0)] * 4 for name in SERIES}
    samples = {"from": 1000, "interval_seconds": 1, **values}
    role = {"operations": {}, "nodes": {"i-1": node}, "samples": samples}
    return {"roles": {"disks": role}, "measured_from": 1000.0, "measured_seconds": 4.0}


def test_every_place_has_the_same_cpu() -> None:
    (use,), (node,) = map(Use.model_validate, series.use(stored())), activity.nodes(stored()["roles"], {}, {})
    lines = {one.name: one.values for one in series.series(stored())}
    sampled = Sampled(1)
    sampled._nodes.values = [WAITS] * 4
    percent = {"user": 0.9, "system": 0.6, "iowait": 98.0, "steal": 0.5, "cpu": "0"}
    tool_series = sysstat._sadf({"cpu-load": [percent]})
    assert busy(WAITS) == tool_series[BUSIEST] == 20
    assert sampled.cpu(15) == (20, 980)
    assert (use.cpu, node.cpu, lines["cpu"]) == (2.0, 2.0, [2.0] * 4)
    assert (use.iowait, node.iowait, lines["iowait"]) == (98.0, 98.0, [98.0] * 4)
    assert busy({**WAITS, "cpu_steal": None}) is None


def limited_by_disks(**figures: Any) -> Cell:
    """A cell whose throughput does not grow with its threads, and whose nodes generate the load themselves."""
    phases = [
        Phase(
            phase="measure",
            parameters={"threads": threads},
            label=f"threads={threads}",
            nodes=1,
            measured_seconds=60,
            operations=[Operation(role="disks", operation="read", count=60_000, per_second=1000.0)],
            use=[Use(role="disks", nodes=1, **figures)],
            members=[Node(node="i-1", role="disks", rank=0, outcome="ok", count=60_000, errors=0, **figures)],
        )
        for threads in (1, 8, 64)
    ]
    fleets = [Fleet(role="disks", nodes=1, instance_type="i4i.large", load=True)]
    return Cell(cell="c001", status="SUCCEEDED", fleets=fleets, phases=phases)


def sentences(cell: Cell) -> list[str]:
    points = [Point(cell="c001", nodes=n, per_second=1000.0, efficiency=1 / n) for n in (1, 4)]
    growth = Scaling(phase="measure", role="disks", operation="read", counted="disks", label="", points=points)
    texts = [*saturation.findings(cell, {}), *trust.findings(cell), *instance_limits.findings(cell, {})]
    return [one.text for one in [*texts, *trust.growth_findings([growth], [cell])]]


def test_no_sentence_blames_a_processor_that_waits_for_a_disk() -> None:
    (use,) = series.use(stored())
    figures = {name: use[name] for name in ("cpu", "iowait", "busiest")}
    texts = sentences(limited_by_disks(**figures))
    about = [text for text in texts if "processor" in text]
    assert len(about) == 5, texts  # of throughput over threads, of each point, and of growth
    for text in about:
        assert "waited for disks" in text
        assert "98 % of the time" in text
        assert "busy for 98 %" not in text
        assert "What is full" not in text
        assert "disks may" in text or "check the disks" in text
    assert (
        "The processors were not full (processors of disks were busy for 2 %), but waited for disks (iowait): disks "
        "for 98 % of the time. The disks may be the limit."
    ) in about[0]


def test_work_and_waiting_are_both_named() -> None:
    texts = sentences(limited_by_disks(cpu=91.0, iowait=8.0))
    assert "busy for 91 % of the time. Processors waited for disks (iowait): disks for 8 % of the time." in texts[0]
    assert "processors were busy: disks for 91 % of the time, and waited for disks (iowait): disks" in texts[-1]


def test_several_roles_that_wait_are_one_list() -> None:
    uses = [Use(role=role, nodes=1, cpu=1.0, iowait=part) for role, part in (("a", 9.0), ("b", 5.0), ("c", 60.0))]
    assert processors.waits(processors.loads(uses)) == "a for 9 % and c for 60 % of the time"


@pytest.mark.parametrize("version", ["earlier", "this"])
def test_a_stored_report_of_an_earlier_version_is_read_by_the_same_definition(version: str) -> None:
    report = study()
    document = report.model_dump(mode="json")
    if version == "earlier":
        del document["cpu_is_busy"]
    (read, before) = (one.cells[0].phases[-1] for one in (parsed(encoded(document), "report.json"), report))
    pairs: list[Any] = [*zip(read.use, before.use, strict=True), *zip(read.members, before.members, strict=True)]
    for now, then in pairs:
        waited = (then.iowait or 0.0) if version == "earlier" else 0.0
        assert now.cpu == pytest.approx((then.cpu or 0.0) - waited, abs=1e-3)
    lines = {(one.role, one.node, one.name): one.values for one in before.series}
    for one in read.series:
        if one.name == "cpu" and (waits := lines.get((one.role, one.node, "iowait"))) and version == "earlier":
            cpu = lines[one.role, one.node, "cpu"]
            expected = [None if a is None else a - (b or 0) for a, b in zip(cpu, waits, strict=True)]
            assert one.values == pytest.approx(expected, abs=1e-3)


def encoded(document: dict[str, Any]) -> bytes:
    return Report.model_validate(document).model_dump_json(exclude_unset=True).encode()
