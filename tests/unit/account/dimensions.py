"""Whatever a test is about: with other dimensions a metric is another, which no alarm and no dashboard knows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from aws_lambda_powertools.metrics import EphemeralMetrics

from troop.shared.aws import metrics
from troop.shared.metrics import DIMENSION, SECOND, Metric


@contextmanager
def right_dimensions(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every metric that functions write in the block has the dimensions that it has everywhere."""
    written: list[tuple[str, set[str]]] = []

    class Noted(EphemeralMetrics):
        def flush_metrics(self, raise_on_empty_metrics: bool = False) -> None:
            written.extend((name, set(self.dimension_set)) for name in self.metric_set)
            super().flush_metrics(raise_on_empty_metrics)

    monkeypatch.setattr(metrics, "EphemeralMetrics", Noted)
    yield
    for name, dimensions in written:
        assert dimensions == {DIMENSION, *filter(None, SECOND.get(Metric(name), "").split(","))}, name
