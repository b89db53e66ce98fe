"""Results over a parameter: rows of cells and points, with all that varies, and timeouts by what timed out."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.cli.reports import cell, operation, report
from troop.report import parameters
from troop.report.document import Cell
from troop.report.parameters import timeouts


def swept(number: int, threads: int, scale: str = "n1", **more: Any) -> Cell:
    rows = [operation(10.0 * threads, **more)]
    one = cell(number, rows, scale, values={"parameters.threads": threads}, nodes={"drivers": int(scale[1:])})
    return one.model_copy(update={"parameters": {"threads": threads, "bucket": "data"}})


def chart(*cells: Cell) -> dict[str, Any]:
    data = parameters.chart(report(list(cells)))
    assert data is not None
    return data


def test_only_varied_parameters_are_axes() -> None:
    data = chart(swept(1, 1), swept(2, 50), swept(3, 400), swept(4, 400, "n2"))
    assert data["axes"] == ["threads", "nodes of drivers", "scale step"]
    assert [row[1:3] for row in data["rows"]] == [
        ["c001", [1, 1, "n1"]],
        ["c002", [50, 1, "n1"]],
        ["c003", [400, 1, "n1"]],
        ["c004", [400, 2, "n2"]],
    ]
    assert parameters.chart(report([swept(1, 1), swept(2, 1)])) is None
    assert parameters.chart(report([])) is None


def test_points_of_a_cell_are_rows_with_their_own_parameters() -> None:
    one = swept(1, 1)
    points = [
        one.phases[0].model_copy(update={"point": n, "label": f"threads={threads}", "parameters": {"threads": threads}})
        for n, threads in ((1, 8), (2, 16))
    ]
    data = chart(one.model_copy(update={"phases": points}))
    assert data["axes"] == ["threads"]
    assert [row[2] for row in data["rows"]] == [[8], [16]]


def test_repeats_of_a_point_on_the_same_nodes_are_one_row() -> None:
    one, other = swept(1, 1), swept(2, 2)
    points = [
        one.phases[0].model_copy(
            update={"point": n, "repeat": n, "label": "threads=1", "operations": [operation(rate)]}
        )
        for n, rate in ((1, 100.0), (2, 400.0))
    ]
    data = chart(one.model_copy(update={"phases": points}), other)
    assert [(row[1], row[3][0]) for row in data["rows"]] == [
        ("c001", 200),
        ("c002", other.phases[0].operations[0].per_second),
    ]


def test_a_report_of_an_earlier_version_has_the_values_of_its_matrix() -> None:
    cells = [swept(n, n).model_copy(update={"parameters": {}}) for n in (1, 2)]
    assert chart(*cells)["axes"] == ["threads"]


def test_only_cells_that_succeeded_have_rows() -> None:
    data = chart(swept(1, 1), swept(2, 2), swept(3, 3).model_copy(update={"status": "FAILED"}))
    assert [row[1] for row in data["rows"]] == ["c001", "c002"]


def test_rates_of_errors_and_timeouts_are_of_all_operations() -> None:
    errors = {"connect-timeout": 3, "read-timeout": 5, "http-503": 2, "timeout": 1}
    data = chart(swept(1, 1, count=89, errors=errors), swept(2, 2, count=100))
    values = dict(zip([name for name, _ in data["measures"]], data["rows"][0][3], strict=True))
    assert (values["Errors"], values["Timeouts"]) == (11, 9)
    assert (values["Connect timeouts"], values["Read timeouts"]) == (3, 5)
    quiet = chart(swept(1, 1), swept(2, 2))
    assert {"Errors", "Throughput"} < {name for name, _ in quiet["measures"]}
    assert not {"Timeouts", "Mean"} & {name for name, _ in quiet["measures"]}


def test_totals_stay_if_there_are_too_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parameters, "MOST_ROWS", 3)
    cells = []
    for number in (1, 2):
        one = swept(number, number)
        rows = [operation(5.0, "rare"), operation(90.0, "often")]
        cells.append(one.model_copy(update={"phases": [one.phases[0].model_copy(update={"operations": rows})]}))
    data = chart(*cells)
    assert data["groups"] == ["all operations", "often", "rare"]
    assert [row[0] for row in data["rows"]] == [0, 0, 1]
    assert data["left_out"] == 3


@pytest.mark.parametrize(
    ("kind", "which"),
    [
        ("connect-timeout", "connect"),
        ("ConnectTimeoutException", "connect"),
        ("ConnectionPoolTimeoutException", "connect"),
        ("read-timeout", "read"),
        ("SocketTimeoutException", "read"),
        ("timeout", "other"),
        ("connect_timeout", "connect"),
        ("ConnectTimeoutError", "connect"),
        ("connection timed out", "connect"),
        ("WriteTimeout", "other"),
        ("thread-timeout", "other"),
        ("spread_timeout", "other"),
        ("disconnect-timeout", "other"),
        ("connection", None),
        ("http-504", None),
        ("connect", None),
    ],
)
def test_timeouts_are_counted_by_their_kind(kind: str, which: str | None) -> None:
    assert timeouts({kind: 7, "tls": 1}) == ({which: 7} if which else {})
