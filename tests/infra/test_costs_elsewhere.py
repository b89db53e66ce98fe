"""Documents that say in passing what a month costs say what costs.md reckons, to as many digits as they give."""

from __future__ import annotations

import re

import pytest

from infra import ROOT
from perf.price import faults, month

IDLE, IN_USE = month(20, 0, 180), month(1000, 0.2, 180)
BY_LIST = [sum(item.price for item in items) for items in (IDLE, IN_USE, faults(4200, 300))]


@pytest.mark.parametrize(
    ("document", "begins", "costs"),
    [
        ("README.md", "Both run serverless", BY_LIST[:1]),
        ("docs/background/comparison.md", "| **Costs** |", BY_LIST),
    ],
)
def test_monthly_costs_are_alike_in_all_documents(document: str, begins: str, costs: list[float]) -> None:
    lines = (ROOT / document).read_text(encoding="utf-8").splitlines()
    (line,) = [line for line in lines if line.startswith(begins)]
    amounts = re.findall(r"\$(\d+(?:\.\d+)?)", line.rstrip(" |").rpartition(" | ")[2])[: len(costs)]
    assert amounts == [f"{cost:.{len(amount.partition('.')[2])}f}" for amount, cost in zip(amounts, costs, strict=True)]
