"""CloudWatch with alarms whose history a test writes: answers in AWS's shapes, page by page."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import boto3
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import ClientError
from botocore.validate import validate_parameters

PAGE = 3
"""The most entries of a page."""


def state_update(at: datetime, old: str, new: str, data: str | None = None) -> dict[str, Any]:
    """An entry as in AWS's example of describe-alarm-history. ``data``: in place of the usual JSON."""
    states = {"version": "1.0", "oldState": {"stateValue": old}, "newState": {"stateValue": new}}
    return {
        "Timestamp": at,
        "HistoryItemType": "StateUpdate",
        "HistorySummary": f"Alarm updated from {old} to {new}",
        "HistoryData": json.dumps(states) if data is None else data,
    }


def entry(at: datetime, kind: str, summary: str = "") -> dict[str, Any]:
    return {"Timestamp": at, "HistoryItemType": kind, "HistorySummary": summary or kind, "HistoryData": "{}"}


@dataclass
class RecordedAlarms:
    """The alarms of an account.

    Attributes:
        alarms: definitions by name.
        entries: the history by name, in any order.
        children: names of the alarms below a composite one, by its name.
        data: the results of GetMetricData by id of the query; without an entry there are no values.
        refusals: an error by operation.
        requests: operations and requests.
    """

    alarms: dict[str, dict[str, Any]] = field(default_factory=dict)
    entries: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    children: dict[str, list[str]] = field(default_factory=dict)
    data: dict[str, list[float]] = field(default_factory=lambda: {"m0": [1.0]})
    refusals: dict[str, tuple[str, int]] = field(default_factory=dict)
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def metric(self, name: str, **definition: Any) -> None:
        """Adds an alarm that needs 3 minutes and was OK for long."""
        usual = {
            "AlarmName": name,
            "StateValue": "OK",
            "Namespace": "shop",
            "MetricName": name,
            "Dimensions": [{"Name": "service", "Value": "web"}],
            "Statistic": "Sum",
            "Period": 60,
            "EvaluationPeriods": 3,
            "TreatMissingData": "notBreaching",
        }
        self.alarms[name] = {key: value for key, value in (usual | definition).items() if value is not None}

    def composite(self, name: str, *children: str, **definition: Any) -> None:
        rule = " OR ".join(f'ALARM("{child}")' for child in children) or "FALSE"
        self.alarms[name] = {"AlarmName": name, "StateValue": "OK", "AlarmRule": rule, **definition}
        self.children[name] = list(children)

    def client(self) -> Any:
        client: Any = boto3.client(
            "cloudwatch", region_name="eu-central-1", aws_access_key_id="x", aws_secret_access_key="x"
        )
        client.meta.events.register("before-parameter-build.cloudwatch", self._ask)
        client.meta.events.register("before-call.cloudwatch", self._answer)
        return client

    def intercept(self, number: int, operation: str, call: Callable[[], Any]) -> Any:
        """Answers CloudWatch's operations in a test that intercepts all calls; see :func:`calls`."""
        if operation not in self._answers:
            return call()
        request: dict[str, Any] = call.args[-1]  # type: ignore[attr-defined]
        self.requests.append((operation, request))
        return self._answer_to(operation, request)

    def operations(self) -> list[str]:
        return [operation for operation, _ in self.requests]

    def _ask(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        self.requests.append((model.name, dict(params)))

    def _answer(self, model: Any, **_: Any) -> tuple[AWSResponse, dict[str, Any]]:
        answer = self._answer_to(*self.requests[-1])
        validate_parameters(answer, model.output_shape)
        return AWSResponse("https://monitoring", 200, HTTPHeaders(), None), answer

    def _answer_to(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        if operation in self.refusals:
            code, status = self.refusals[operation]
            metadata = {"HTTPStatusCode": status, "RetryAttempts": 0}
            error: Any = {"Error": {"Code": code, "Message": "not now"}, "ResponseMetadata": metadata}
            raise ClientError(error, operation)
        return self._answers[operation](request)

    @property
    def _answers(self) -> dict[str, Callable[[dict[str, Any]], dict[str, Any]]]:
        return {
            "DescribeAlarms": self._describe,
            "DescribeAlarmHistory": self._history,
            "GetMetricData": self._data,
        }

    def _describe(self, request: dict[str, Any]) -> dict[str, Any]:
        if parent := request.get("ChildrenOfAlarmName"):
            assert not request.keys() - {"ChildrenOfAlarmName", "MaxRecords", "NextToken"}
            listed = self.children[parent]
            return self._by_type([{"AlarmName": name, **self.alarms.get(name, {})} for name in listed], short=True)
        assert len(request["AlarmNames"]) <= 100
        types = request.get("AlarmTypes", ["MetricAlarm"])
        alarms = [self.alarms[name] for name in request["AlarmNames"] if name in self.alarms]
        return self._by_type(
            [one for one in alarms if ("CompositeAlarm" if "AlarmRule" in one else "MetricAlarm") in types]
        )

    def _by_type(self, alarms: list[dict[str, Any]], short: bool = False) -> dict[str, Any]:
        shown = [{"AlarmName": one["AlarmName"]} if short else one for one in alarms]
        pairs = list(zip(alarms, shown, strict=True))
        return {
            "MetricAlarms": [s for one, s in pairs if "MetricName" in one or "Metrics" in one],
            "CompositeAlarms": [s for one, s in pairs if "AlarmRule" in one],
            "LogAlarms": [s for one, s in pairs if not {"MetricName", "Metrics", "AlarmRule"} & one.keys()],
        }

    def _history(self, request: dict[str, Any]) -> dict[str, Any]:
        assert request["AlarmTypes"] == ["MetricAlarm", "CompositeAlarm"]
        assert request["ScanBy"] == "TimestampAscending"
        name, start = request["AlarmName"], int(request.get("NextToken", 0))
        entries = sorted(self.entries.get(name, []), key=lambda one: one["Timestamp"])
        entries = [{"AlarmName": name, **one} for one in entries if one["Timestamp"] >= request["StartDate"]]
        more = {"NextToken": str(start + PAGE)} if start + PAGE < len(entries) else {}
        return {"AlarmHistoryItems": entries[start : start + PAGE], **more}

    def _data(self, request: dict[str, Any]) -> dict[str, Any]:
        assert request["StartTime"] < request["EndTime"]
        results = []
        for query in request["MetricDataQueries"]:
            assert ("MetricStat" in query) != ("Expression" in query)
            if query.get("ReturnData", True):
                values = self.data.get(query["Id"], [])
                times = [request["StartTime"]] * len(values)
                one = {"Id": query["Id"], "Label": "", "StatusCode": "Complete", "Timestamps": times, "Values": values}
                results.append(one)
        return {"MetricDataResults": results, "Messages": []}
