"""Reads the values of a metric from CloudWatch, with the caller's own rights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from cli.shared import aws
from cli.shared.errors import CliError, Exit
from cli.thresholds.history import DAY, History, Point, spacing
from cli.thresholds.metric import Metric

LONGEST_DAYS = 455
"""The days for which CloudWatch stores values."""

_STORED = ((15, 60), (63, 300), (LONGEST_DAYS, 3600))
"""(days, seconds): the finest period of values that are at most so old."""

_PERIODS = (60, 300, 900, 1800, 3600, 6 * 3600, DAY)
"""Periods that an alarm can have, for metrics that are written less often than they can be read."""

MOST_NAMED = 5
"""The most other metrics that a refusal names."""


@dataclass(frozen=True)
class MetricReader:
    """Reads metrics. ``client``: CloudWatch's."""

    client: Any

    def read(self, metric: Metric, statistic: str, days: int, now: datetime) -> History:
        """Reads the values of the last days, in the finest period that CloudWatch stores for so long.

        A metric that is written less often gets the period in which it is written: else it would have gaps between
        all values, and no alarm would go off.

        Raises:
            CliError: REFUSED, if there is no such metric; or what AWS refuses.
        """
        finest = _finest(days)
        history = self._values(metric, statistic, days, now, finest)
        usual = spacing(history.points)
        period = next((one for one in _PERIODS if one >= max(usual, finest)), _PERIODS[-1])
        if period != finest:
            history = self._values(metric, statistic, days, now, period)
        if not history.points:
            raise CliError(Exit.REFUSED, self._no_values(metric, days))
        return history

    def _values(self, metric: Metric, statistic: str, days: int, now: datetime, period: int) -> History:
        until = int(now.timestamp()) // period * period  # the current period has only a part of its values
        stat = {"Metric": request(metric), "Period": period, "Stat": statistic}
        query: dict[str, Any] = {
            "MetricDataQueries": [{"Id": "values", "MetricStat": stat}],
            "StartTime": datetime.fromtimestamp(until - days * DAY, UTC),
            "EndTime": datetime.fromtimestamp(until, UTC),
            "ScanBy": "TimestampAscending",
        }
        values: dict[int, float] = {}
        with aws.translated_errors():
            for page in self.client.get_paginator("get_metric_data").paginate(**query):
                for result in page["MetricDataResults"]:
                    pairs = zip(result["Timestamps"], result["Values"], strict=True)
                    values |= {int(at.timestamp()): value for at, value in pairs}
                    _check(result, bool(page.get("NextToken")))
        return History(tuple(Point(at, values[at]) for at in sorted(values)), period)

    def _no_values(self, metric: Metric, days: int) -> str:
        message = f"{metric} has no value of the last {days} days"
        try:
            others = self._others(metric)
        except CliError:  # a hint must not hide what happened
            return f"{message}: check its name and dimensions"
        if not others:
            return f"{message}, and nothing of the last two weeks has its name: check the region, name and dimensions"
        return f"{message}; with values: {'; '.join(others[:MOST_NAMED])}"

    def _others(self, metric: Metric) -> list[str]:
        """Lists metrics of the same name, those with the most equal dimensions first."""
        with aws.translated_errors():
            page = self.client.list_metrics(Namespace=metric.namespace, MetricName=metric.name)
        others = [
            Metric(one["Namespace"], one["MetricName"], tuple((d["Name"], d["Value"]) for d in one["Dimensions"]))
            for one in page["Metrics"]
        ]
        mine = set(metric.dimensions)
        others.sort(key=lambda other: (-len(mine & set(other.dimensions)), str(other)))
        return [str(other) for other in others]


def request(metric: Metric) -> dict[str, Any]:
    """Returns a metric as CloudWatch's API has it."""
    dimensions = [{"Name": name, "Value": value} for name, value in metric.dimensions]
    return {"Namespace": metric.namespace, "MetricName": metric.name, "Dimensions": dimensions}


def _finest(days: int) -> int:
    # A period that begins exactly so many days ago is older before the request arrives.
    return next(period for stored, period in _STORED if days < stored or stored == LONGEST_DAYS)


def _check(result: Mapping[str, Any], more: bool) -> None:
    """Raises an error for values that are not all, unless more pages follow.

    Raises:
        CliError: FORBIDDEN or FAILED.
    """
    status = result.get("StatusCode", "Complete")
    if status == "Forbidden":
        raise CliError(Exit.FORBIDDEN, "permission denied: CloudWatch does not show you this metric")
    if status != "Complete" and not more:
        raise CliError(Exit.FAILED, f"CloudWatch returned only a part of the values ({status}): try again")
