"""Reads from CloudWatch how long tasks have waited."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

PERIOD = timedelta(minutes=1)
"""The distance of SQS's figures."""

LATEST = timedelta(minutes=10)
"""Time within which a figure must be to count: SQS reports late, and not at all about a queue that nobody uses."""


@dataclass(frozen=True)
class QueueAges:
    """The ages of tasks on queues.

    Attributes:
        cloudwatch: a client.
    """

    cloudwatch: Any

    def oldest(self, queue: str, now: datetime) -> int | None:
        """Returns the age of a queue's oldest task in seconds; None if CloudWatch has no recent figure.

        Raises:
            ClientError: CloudWatch refused.
        """
        metric = {
            "Namespace": "AWS/SQS",
            "MetricName": "ApproximateAgeOfOldestMessage",
            "Dimensions": [{"Name": "QueueName", "Value": queue}],
        }
        stat = {"Metric": metric, "Period": int(PERIOD.total_seconds()), "Stat": "Maximum"}
        answer = self.cloudwatch.get_metric_data(
            MetricDataQueries=[{"Id": "age", "MetricStat": stat}],
            StartTime=now - LATEST,
            EndTime=now + PERIOD,
            ScanBy="TimestampDescending",
        )
        (result,) = answer["MetricDataResults"]
        return int(result["Values"][0]) if result["Values"] else None
