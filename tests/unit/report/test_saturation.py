"""Where more threads bring no more throughput, and what was full there."""

from __future__ import annotations

from typing import Any

import pytest

from troop.bench.fleets.type_facts import GBIT, TypeFacts
from troop.report.document import Cell, Fleet, Node, Operation, Phase, Use
from troop.report.saturation import findings

TYPES = {"c7g.large": TypeFacts(network_gbps=1.0)}
THREADS = (1, 10, 50, 100, 200, 400)


def point(
    threads: Any,
    rate: float,
    cpu: float | None = 30.0,
    core: float | None = 40.0,
    gbit: float | None = 0.1,
    errors: dict[str, int] | None = None,
    targets: dict[str, float] | None = None,
    **parameters: Any,
) -> Phase:
    """A point with one operation of one role, on one node."""
    return Phase(
        phase="measure",
        parameters={"threads": threads, **parameters},
        label=f"threads={threads}",
        nodes=1,
        measured_seconds=60,
        targets=targets or {},
        operations=[
            Operation(role="drivers", operation="read", count=int(60 * rate), per_second=rate, errors=errors or {})
        ],
        use=[Use(role="drivers", nodes=1, cpu=cpu, busiest=core)],
        members=[
            Node(
                node="i-1",
                role="drivers",
                rank=0,
                zone="a",
                instance_type="c7g.large",
                purchase="spot",
                outcome="ok",
                count=1,
                errors=0,
                network_received_bytes=None if gbit is None else gbit * GBIT,
            )
        ],
    )


def texts(*phases: Phase) -> list[str]:
    fleets = [Fleet(role="drivers", nodes=1, instance_type="c7g.large", load=True)]
    cell = Cell(cell="c001", status="SUCCEEDED", fleets=fleets, phases=list(phases))
    return [one.text for one in findings(cell, TYPES)]


def line(rates: tuple[float, ...], full: dict[str, Any], **always: Any) -> list[Phase]:
    """A point for each rate; from the fourth on, with what was full."""
    return [
        point(threads, rate, **{**(full if n >= 3 else {}), **always})
        for n, (threads, rate) in enumerate(zip(THREADS, rates, strict=True))
    ]


GROWING = (8.0, 80.0, 400.0, 800.0, 1600.0, 3200.0)
FLAT = (8.0, 80.0, 400.0, 800.0, 850.0, 870.0)
GROWS = "measure, read of drivers: throughput grows up to threads=100 (800 a second), and up to threads=400 it is "


@pytest.mark.parametrize(
    ("full", "why"),
    [
        (
            {"cpu": 97.0},
            "What is full: processors of drivers, which generate the load, were busy for 97 % of the time.",
        ),
        (
            {"core": 99.0},
            "What is full: one processor of drivers, which generate the load, was busy for 99 % of the time.",
        ),
        (
            {"gbit": 0.95},
            "What is full: nodes of drivers received 0.950 Gbit/s each, and the baseline of their network is 1.00.",
        ),
        (
            {},
            "The nodes were not full (processors of drivers were busy for 30 %; nodes of drivers received 0.100 of "
            "1.00 Gbit/s): the limit is the service, or beyond the nodes.",
        ),
        ({"cpu": None, "core": None, "gbit": None}, "The load of nodes was not measured, so the reason is unknown."),
    ],
)
def test_the_point_and_the_reason_are_named(full: dict[str, Any], why: str) -> None:
    assert texts(*line(FLAT, full)) == [f"{GROWS}at most 9% higher. {why}"]


def test_a_refusal_of_the_service_is_no_fault_of_the_node() -> None:
    sentences = texts(*line(FLAT, {"errors": {"http-503-SlowDown": 60, "http-500": 3}}))
    assert len(sentences) == 4
    assert sentences[0] == (
        "measure, threads=100, read of drivers: the service answered SlowDown to 60 of 48,063 operations (0.12%). This "
        "is the limit of its request rate, and not of the nodes. S3 raises the limit under load, within minutes to "
        "hours: "
        "warm up for longer, or spread the keys over more prefixes."
    )
    assert (
        sentences[-1]
        == f"{GROWS}at most 9% higher. What is full: the service answered SlowDown, so its request rate is the limit."
    )


@pytest.mark.parametrize("rates", [GROWING, (8.0, 80.0, 400.0, 700.0, 800.0, 900.0)])
def test_throughput_that_grows_to_the_end_is_no_finding(rates: tuple[float, ...]) -> None:
    assert texts(*line(rates, {"cpu": 99.0})) == []


def test_throughput_that_falls_is_flat() -> None:
    (text,) = texts(*line((8.0, 80.0, 400.0, 300.0, 250.0, 200.0), {"cpu": 99.0}))
    assert "grows up to threads=50 (400 a second), and up to threads=400 it is never higher." in text


def test_each_setting_of_other_parameters_has_a_line_of_its_own() -> None:
    small, large = line(GROWING, {}, max_bytes=1024), line(FLAT, {"gbit": 0.99}, max_bytes=10240)
    mixed = [one for pair in zip(small, large, strict=True) for one in pair]
    (text,) = texts(*mixed)
    assert text.startswith("measure, read of drivers (max_bytes=10240): throughput grows up to threads=100")


def test_a_set_rate_is_no_saturation() -> None:
    assert texts(*line((100.0,) * 6, {"cpu": 99.0}, targets={"drivers": 100.0})) == []


def test_repeats_of_a_point_are_one_value() -> None:
    repeated = [one for one in line(FLAT, {"cpu": 97.0}) for _ in range(2)]
    (text,) = texts(*repeated)
    assert text.startswith(GROWS)


@pytest.mark.parametrize("threads", [True, "many", {"read": 1}, None])
def test_parameter_without_numbers_of_threads_has_no_finding(threads: Any) -> None:
    assert texts(point(threads, 10.0), point(threads, 10.0)) == []
