"""Names CloudWatch's metrics as people type them: ``Namespace/Metric{Dimension=value,...}``, or the name of a check."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from troop.chaos import health
from troop.shared import metrics
from troop.shared.metrics import CHECK, DIMENSION, FLEET, NAMESPACE

FORM = "Namespace/Metric{Dimension=value,...}"

AVERAGE, MINIMUM, MAXIMUM = "Average", "Minimum", "Maximum"
PLAIN = frozenset({"SampleCount", AVERAGE, "Sum", MINIMUM, MAXIMUM})
"""The statistics that an alarm takes by their name; others are extended ones, such as p99."""

OWN: Mapping[str, metrics.Metric] = {
    health.UNITS_UNRECOVERED: metrics.Metric.UNITS_UNRECOVERED,
    health.HALTED_ITSELF: metrics.Metric.HALTED_ITSELF,
    health.TICKS_MISSING: metrics.Metric.MISSING_TICKS,
}
"""The checks of GET /health whose values are a metric of the deployment."""

_TYPED = re.compile(r"(?P<name>[^{}]+?)\s*(?:\{(?P<dimensions>[^{}]*)\})?")
_FALLING = re.compile(
    r"(?<!un)health|(?<!un)available|free|remain|succe|hit_?rate|^done|^work$|in_?service|balance", re.IGNORECASE
)


class Side(StrEnum):
    """On which side of the threshold a value is bad."""

    ABOVE = "above"
    BELOW = "below"


class BadNameError(ValueError):
    """A text that names no metric; the message says what is allowed."""


@dataclass(frozen=True)
class Metric:
    """A metric of CloudWatch.

    Attributes:
        dimensions: (name, value) of all of its dimensions.
    """

    namespace: str
    name: str
    dimensions: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        inside = ",".join(f"{name}={value}" for name, value in self.dimensions)
        return f"{self.namespace}/{self.name}" + (f"{{{inside}}}" if inside else "")

    @property
    def is_health(self) -> bool:
        """Whether it has the values of checks."""
        return self.namespace == NAMESPACE and self.name in {metrics.Metric.FLEET_HEALTH, *OWN.values()}

    @property
    def usual_side(self) -> Side:
        """The side on which values are bad, judged by the name: few healthy hosts are bad, and many errors."""
        checked = dict(self.dimensions).get(CHECK)
        return Side.BELOW if _FALLING.search(checked or self.name) and not self._counts_checks else Side.ABOVE

    @property
    def _counts_checks(self) -> bool:
        return self.namespace == NAMESPACE and self.name in OWN.values()

    def usual_statistic(self, side: Side) -> str:
        """Returns the statistic of an alarm: the worst node for checks, which have a value of each node."""
        if not self.is_health:
            return AVERAGE
        return MAXIMUM if side is Side.ABOVE else MINIMUM


def check_metric(check: str, deployment: str, fleet: str | None) -> Metric:
    """Returns the metric of a check.

    Args:
        fleet: the name of the fleet whose nodes are checked; None for the deployment's own checks.

    Raises:
        BadNameError: the deployment writes no metric of this check.
    """
    own = (DIMENSION, deployment)
    if fleet is not None:
        return Metric(NAMESPACE, metrics.Metric.FLEET_HEALTH.value, (own, (FLEET, fleet), (CHECK, check)))
    if check in OWN:
        return Metric(NAMESPACE, OWN[check].value, (own,))
    raise BadNameError(
        f"{check!r} is neither a metric, {FORM}, nor a check of Troop with a metric ({', '.join(OWN)}); "
        "for a check of a fleet's nodes add --fleet NAME"
    )


def parse(text: str) -> Metric:
    """Parses the name of a metric with all of its dimensions.

    Raises:
        BadNameError: the text has another form.
    """
    match = _TYPED.fullmatch(text.strip())
    namespace, _, name = (match["name"] if match else "").strip().rpartition("/")
    if match is None or not namespace or not name:
        raise BadNameError(f"{text!r} is not the name of a metric: must be {FORM}")
    return Metric(namespace, name, tuple(_dimensions(text, match["dimensions"] or "")))


def _dimensions(text: str, inside: str) -> list[tuple[str, str]]:
    pairs = [part.partition("=") for part in inside.split(",") if part.strip()]
    if any(not (name.strip() and value.strip()) for name, _, value in pairs):
        raise BadNameError(f"{text!r} has a dimension without a name or value: must be {FORM}")
    return [(name.strip(), value.strip()) for name, _, value in pairs]
