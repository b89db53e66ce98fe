"""What a report says of tools whose times are rounded, or leave something out."""

from __future__ import annotations

from typing import Any

from troop.report.document import Cell, Operation, Phase
from troop.report.trust import tool_limits


def cell(*operations: tuple[str, str, float | None]) -> Cell:
    common: dict[str, Any] = {"role": "drivers", "count": 10, "per_second": 1.0}
    its = [Operation(operation=name, tools=[tool], max_ms=most, **common) for name, tool, most in operations]
    phase = Phase(phase="measure", nodes=1, measured_seconds=60, operations=its)
    return Cell(cell="c001", status="SUCCEEDED", phases=[phase])


def test_each_tool_is_named_once_with_its_operations() -> None:
    home, cart = ("home", "JMeter", 5.0), ("cart", "k6", 5.0)
    (jmeter, k6) = tool_limits([cell(home, cart), cell(home)])
    assert jmeter.startswith("Times of home are whole milliseconds, because JMeter")
    assert k6.startswith("Times of cart leave out name resolution, connecting and TLS: k6")


def test_tools_that_measure_all_and_operations_without_times_need_no_sentence() -> None:
    assert tool_limits([cell(("home", "Locust", 5.0), ("dropped_iterations", "k6", None))]) == []
