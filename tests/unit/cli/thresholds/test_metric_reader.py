"""Reading a metric: in the finest period that CloudWatch stores, or in which it is written; pages, and refusals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.paginate import Paginator

from cli.shared.errors import CliError, Exit
from cli.thresholds.metric import Metric
from cli.thresholds.metric_reader import MetricReader

NOW = datetime.now(UTC).replace(minute=7, second=30, microsecond=0)
QUEUE = Metric("Mine", "Depth", (("Queue", "orders"),))


class CloudWatch:
    """A CloudWatch that has a value each ``every`` seconds, and returns none in a finer period than it has stored.

    Attributes:
        requests: the arguments of each request.
    """

    def __init__(self, every: int = 60, page: int = 7000, status: str = "Complete") -> None:
        self.every, self.page, self.status = every, page, status
        self.requests: list[dict[str, Any]] = []
        self.others: list[dict[str, Any]] | ClientError = []

    def get_metric_data(self, **request: Any) -> dict[str, Any]:
        self.requests.append(dict(request))
        (query,) = request["MetricDataQueries"]
        period, since = query["MetricStat"]["Period"], int(request["StartTime"].timestamp())
        until, age = int(request["EndTime"].timestamp()), NOW - request["StartTime"]
        stored = 60 if age < timedelta(days=15) else 300 if age < timedelta(days=63) else 3600
        assert since % period == until % period == 0
        step = max(period, self.every)
        moments = [] if period < stored else list(range(-(-since // step) * step, until, step))
        begin = int(request.get("NextToken", 0))
        part = moments[begin : begin + self.page]
        more = begin + self.page < len(moments)
        result = {
            "Id": query["Id"],
            "Timestamps": [datetime.fromtimestamp(at, UTC) for at in part],
            "Values": [float(at) for at in part],
            "StatusCode": "PartialData" if more else self.status,
        }
        token = {"NextToken": str(begin + self.page)} if more else {}
        return {"MetricDataResults": [result], **token}

    def get_paginator(self, operation: str) -> Paginator[Any]:
        tokens = {"input_token": "NextToken", "output_token": "NextToken", "result_key": "MetricDataResults"}
        model: Any = None
        return Paginator(getattr(self, operation), tokens, model)

    def list_metrics(self, **_: Any) -> dict[str, Any]:
        if isinstance(self.others, ClientError):
            raise self.others
        return {"Metrics": self.others}


@pytest.mark.parametrize(
    ("days", "every", "period", "points"),
    [
        (1, 60, 60, 1440),
        (14, 60, 60, 14 * 1440),
        (15, 60, 300, 15 * 288),
        (62, 60, 300, 62 * 288),
        (63, 60, 3600, 63 * 24),
        (455, 60, 3600, 455 * 24),
        (14, 300, 300, 14 * 288),
        (30, 900, 900, 30 * 96),
        (30, 1000, 1800, 30 * 48),
        (30, 86_400, 86_400, 30),
    ],
)
def test_the_period_is_the_finest_with_values(days: int, every: int, period: int, points: int) -> None:
    cloudwatch = CloudWatch(every)
    history = MetricReader(cloudwatch).read(QUEUE, "p99", days, NOW)
    assert (history.period, len(history.points), history.gaps) == (period, points, ())
    assert [point.at for point in history.points] == sorted(point.value for point in history.points)
    assert history.points[-1].at + period <= NOW.timestamp(), "a period that has not ended"
    (query,) = cloudwatch.requests[-1]["MetricDataQueries"]
    assert query["MetricStat"]["Stat"] == "p99"
    assert query["MetricStat"]["Metric"]["Dimensions"] == [{"Name": "Queue", "Value": "orders"}]


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [("Forbidden", Exit.FORBIDDEN, "permission denied"), ("InternalError", Exit.FAILED, "only a part of the values")],
)
def test_values_that_are_not_all_are_no_history(status: str, code: Exit, words: str) -> None:
    with pytest.raises(CliError, match=words) as refusal:
        MetricReader(CloudWatch(status=status)).read(QUEUE, "Average", 3, NOW)
    assert refusal.value.code is code


def named(*dimensions: tuple[str, str]) -> dict[str, Any]:
    pairs = [{"Name": name, "Value": value} for name, value in dimensions]
    return {"Namespace": "Mine", "MetricName": "Depth", "Dimensions": pairs}


DENIED = ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "ListMetrics")


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ([], "nothing of the last two weeks has its name"),
        (DENIED, "check its name and dimensions"),
        (
            [named(), named(("Queue", "orders"), ("Zone", "a"))],
            "with values: Mine/Depth{Queue=orders,Zone=a}; Mine/Depth",
        ),
    ],
)
def test_a_metric_without_values_is_refused_with_those_of_its_name(others: Any, words: str) -> None:
    cloudwatch = CloudWatch(every=10**9)
    cloudwatch.others = others
    with pytest.raises(CliError) as refusal:
        MetricReader(cloudwatch).read(QUEUE, "Average", 3, NOW)
    assert refusal.value.code is Exit.REFUSED
    assert "Mine/Depth{Queue=orders} has no value of the last 3 days" in str(refusal.value)
    assert words in str(refusal.value)
