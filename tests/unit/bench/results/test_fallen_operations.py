"""Operations that a fault takes, although all together go on."""

from __future__ import annotations

from typing import Any

from tests.unit.bench.measuring.request_log import BEGIN, Request, recorded, steady, stopped
from troop.bench.measuring.failure import Load, entries
from troop.bench.results.fallen_operations import fallen

SECONDS, READS = 60, 175
HUNG = [one for one in steady(SECONDS, 5) if one.ended < 30]


def phase(writes: list[Request], reads: list[Request] | None = None, lasts: int | None = None) -> dict[str, Any]:
    """Reads, which go on unless they are given, and 5 writes a second."""
    each = {
        "read": recorded(steady(SECONDS, READS) if reads is None else reads, SECONDS),
        "write": recorded(writes, SECONDS),
    }
    return {
        "faults": entries([stopped(30, lasts=lasts)], Load([*each.values()], BEGIN, SECONDS)),
        "roles": {"drivers": {"operations": {name: one.document() for name, one in each.items()}}},
    }


def test_a_rare_operation_that_hangs_falls_although_the_rate_does_not() -> None:
    document = phase(HUNG)
    (fault,) = document["faults"]
    assert (fault["back"]["rate_s"], fault["failed"]) == (0, 0)
    rates = {"before": 5, "during": 0, "after": 0, "lowest": 0}
    assert fallen(document) == [{"number": 1, "role": "drivers", "operation": "write", **rates}]


def test_one_that_comes_back_has_the_lowest_rate_of_five_seconds() -> None:
    back = [*HUNG, *steady(SECONDS, 5, since=42)]
    (row,) = fallen(phase(back, lasts=10))
    assert (row["during"], row["lowest"]) == (0, 0)
    assert 2 < row["after"] < 5


def test_operations_that_go_on_do_not_fall() -> None:
    assert fallen(phase(steady(SECONDS, 5))) == []


def test_each_that_falls_has_a_row_also_if_all_do() -> None:
    reads = [one for one in steady(SECONDS, READS) if one.ended < 30]
    assert [row["operation"] for row in fallen(phase(HUNG, reads))] == ["read", "write"]


def test_one_operation_alone_is_that_of_the_windows() -> None:
    document = phase(HUNG, [one for one in steady(SECONDS, READS) if one.ended < 30])
    del document["roles"]["drivers"]["operations"]["write"]
    assert fallen(document) == []


def test_unknown_figures_have_no_operations() -> None:
    document = phase(HUNG, [one for one in steady(SECONDS, READS) if not 20 < one.ended < 30])
    assert document["faults"][0]["verdict"] == "UNKNOWN"
    assert fallen(document) == []
