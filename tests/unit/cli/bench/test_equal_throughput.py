"""What a side needs for a throughput: between measured steps, beyond them, and from a single one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.bench import equal_throughput
from cli.bench.equal_throughput import Measured
from tests.unit.cli.reports import PRICES, cell, repeated
from troop.report.document import Cell
from troop.report.points import by_key

READ = ("measure", "", "drivers", "read")


def steps(*measured: tuple[int, int, float]) -> list[Measured]:
    return [Measured({"servers": s, "drivers": d}, rate, PRICES) for s, d, rate in measured]


def steps_of(cells: list[Cell], like: Cell) -> list[Measured]:
    return equal_throughput.measured(cells, like, by_key(cells)[READ])


GROWING = steps((3, 1, 300.0), (6, 2, 560.0), (12, 4, 1000.0))


@pytest.mark.parametrize(
    ("own", "target", "nodes", "scaled"),
    [
        ((3, 1), 300.0, {"servers": 3, "drivers": 1}, "measured"),
        ((3, 1), 560.0, {"servers": 6, "drivers": 2}, "measured"),
        ((6, 2), 1000.0, {"servers": 12, "drivers": 4}, "measured"),
        ((3, 1), 430.0, {"servers": 5, "drivers": 2}, "interpolated"),  # half way: 4.5 and 1.5
        ((6, 2), 780.0, {"servers": 9, "drivers": 3}, "interpolated"),  # exactly half way
        # least squares: 77.142857 a server, and 80; so 15.5555... servers for 1280, and a third of them drivers
        ((12, 4), 1280.0, {"servers": 16, "drivers": 6}, "extrapolated"),
    ],
)
def test_nodes_follow_what_was_measured(
    own: tuple[int, int], target: float, nodes: dict[str, int], scaled: str
) -> None:
    need = equal_throughput.need(GROWING, {"servers": own[0], "drivers": own[1]}, target)
    assert need is not None
    assert (need.nodes, need.scaled) == (nodes, scaled)
    assert need.hourly == pytest.approx(0.2 * nodes["servers"] + 0.1 * nodes["drivers"])


def test_where_more_nodes_do_not_do_more_there_is_no_answer() -> None:
    falling = steps((3, 1, 300.0), (6, 2, 250.0))
    assert equal_throughput.need(falling, {"servers": 3, "drivers": 1}, 400.0) is None
    assert equal_throughput.need(steps((3, 1, 0.0)), {"servers": 3, "drivers": 1}, 400.0) is None
    assert equal_throughput.need(GROWING, {"servers": 5, "drivers": 1}, 400.0) is None


@given(st.floats(0.1, 1e6))
def test_own_nodes_do_what_was_measured_for_their_cost(rate: float) -> None:
    """The search for the rate ends a rounding error above it, which is not beyond what was measured."""
    own = {"servers": 1, "drivers": 1}
    its = equal_throughput.afford(steps((1, 1, rate)), own, 0.2, ["servers"])
    assert its is not None
    assert (its.nodes, its.scaled, its.per_second) == ({"servers": 1}, "measured", pytest.approx(rate))


def test_a_last_step_below_the_line_needs_more_than_it_has() -> None:
    saturating = steps((3, 1, 300.0), (6, 2, 600.0), (12, 4, 700.0))
    need = equal_throughput.need(saturating, {"servers": 12, "drivers": 4}, 710.0)
    assert need is not None
    assert need.nodes["servers"] > 12


def test_need_without_all_prices_has_no_cost() -> None:
    unpriced = [Measured({"servers": 3, "drivers": 1}, 100.0, {"servers": 0.2, "drivers": None})]
    need = equal_throughput.need(unpriced, {"servers": 3, "drivers": 1}, 100.0)
    assert need is not None
    assert need.hourly is None


@given(st.floats(300, 5000), st.floats(300, 5000))
def test_more_throughput_never_needs_fewer_nodes(one: float, other: float) -> None:
    own = {"servers": 3, "drivers": 1}
    less, more = (equal_throughput.need(GROWING, own, target) for target in sorted((one, other)))
    assert less is not None
    assert more is not None
    assert all(less.nodes[role] <= more.nodes[role] for role in own)


def test_steps_are_those_of_the_same_combination_repetitions_together() -> None:
    threads = {"parameters.threads": 4}
    cells = [
        *repeated([100.0, 400.0], "n3", values=threads),
        cell(3, 500.0, "n6", values=threads, nodes={"servers": 6, "drivers": 2}),
        cell(4, 900.0, "n6", values={"parameters.threads": 8}, nodes={"servers": 6, "drivers": 2}),
        cell(5, 900.0, "n12", values=threads, status="FAILED"),
    ]
    measurements = steps_of(cells, cells[0])
    assert [(one.nodes["servers"], round(one.per_second, 6)) for one in measurements] == [(3, 200.0), (6, 500.0)]
    assert measurements[0].prices == pytest.approx(PRICES)


def test_a_matrix_of_counts_makes_steps_too() -> None:
    cells = [cell(n, 100.0 * n, values={"fleets.servers.count": n}, nodes={"servers": n, "drivers": 1}) for n in (3, 6)]
    assert [one.nodes["servers"] for one in steps_of(cells, cells[1])] == [3, 6]


def test_more_drivers_for_the_same_servers_are_no_step() -> None:
    cells = [
        cell(n, 100.0 * n, f"n{n}", values={"fleets.drivers.count": d}, nodes={"servers": n, "drivers": d})
        for n in (3, 6)
        for d in (1, 4)
    ]
    measurements = steps_of(cells, cells[1])
    assert [one.nodes for one in measurements] == [{"servers": 3, "drivers": 4}, {"servers": 6, "drivers": 4}]


def test_other_instance_types_are_no_step() -> None:
    """Scale steps can be variants of the system: a larger type is not more of the same nodes."""
    cells = [cell(n, 100.0 * n, f"n{n}", nodes={"servers": n, "drivers": 1}) for n in (3, 6)]
    larger = [fleet.model_copy(update={"instance_type": "z.large"}) for fleet in cells[1].fleets]
    steps = steps_of([cells[0], cells[1].model_copy(update={"fleets": larger})], cells[0])
    assert [one.nodes["servers"] for one in steps] == [3]
