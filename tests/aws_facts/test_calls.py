"""Every call of an API exists in its model, with these parameters and values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from local.account.shapes import UNKNOWN, problems
from tests.aws_facts.code import Call, calls, operations
from tests.aws_facts.sources import model, paging

_CALLS = list(calls())


def test_extraction_covers_the_calls_of_the_code() -> None:
    """A change of how the code makes calls must not leave this folder with nothing to check."""
    assert len(_CALLS) > 150
    assert {"terminate_instances", "delete_volume", "transact_write_items"} <= {call.method for call in _CALLS}


@pytest.mark.parametrize("call", _CALLS, ids=lambda call: f"{call.where} {call.method}")
def test_a_call_is_one_of_the_model(call: Call) -> None:
    by_operation = _by_operation(call)
    assert [] in by_operation.values(), by_operation


@pytest.mark.parametrize(
    ("method", "parameters", "problem"),
    [
        ("terminate_instances", {"InstanceIds": UNKNOWN, "SkipOSShutdown": True}, ".SkipOSShutdown is unknown"),
        ("terminate_instances", {"SkipOsShutdown": True}, ".InstanceIds is missing"),
        ("put_object", {"Bucket": UNKNOWN, "Key": UNKNOWN, "IfNoneMatches": "*"}, ".IfNoneMatches is unknown"),
        ("receive_message", {"QueueUrl": UNKNOWN, "MessageSystemAttributeNames": ["Sent"]}, "cannot be 'Sent'"),
        ("describe_instances", {"Filters": [{"Key": "tag", "Values": UNKNOWN}]}, ".Filters.Key is unknown"),
        ("describe_auto_scaling_groups", {"MaxRecords": 101}, ".MaxRecords cannot be 101"),
        ("describe_alarms", {"PaginationConfig": {"PageSize": 101}}, ".MaxRecords cannot be 101"),
    ],
)
def test_bad_parameter_is_detected(method: str, parameters: dict[str, Any], problem: str) -> None:
    call = Call("here", method, parameters, is_complete=True, pages="PaginationConfig" in parameters)
    assert [problem in " ".join(every) for every in _by_operation(call).values()] == [True]


def _by_operation(call: Call) -> dict[str, list[str]]:
    """Returns the problems by the operation of which it can be a call."""
    return {
        f"{service} {operation}": list(_problems(service, model(service).operation_model(operation), call))
        for service, operation in operations()[call.method]
    }


def _problems(service: str, operation: Any, call: Call) -> Iterator[str]:
    parameters, shape = dict(call.parameters), operation.input_shape
    if call.pages:
        pages = paging(service)[operation.name]
        size = (parameters.pop("PaginationConfig", None) or {}).get("PageSize", UNKNOWN)
        parameters |= {pages["limit_key"]: size} if "limit_key" in pages else {}
    if shape is None:
        yield from parameters
        return
    yield from problems(shape, parameters, is_complete=call.is_complete)
