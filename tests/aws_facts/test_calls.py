"""Every call of an API exists in its model, with these parameters and values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.aws_facts.code import UNKNOWN, Call, calls, operations
from tests.aws_facts.sources import model, paging, plain

_CALLS = list(calls())
_DOCUMENTED_MOST = re.compile(r"(?:maximum value (?:is|of)|value can be between \d+ and) (\d[\d,]*)")


def test_the_calls_are_found() -> None:
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
        ("receive_message", {"QueueUrl": UNKNOWN, "MessageSystemAttributeNames": ["Sent"]}, "cannot be Sent"),
        ("describe_instances", {"Filters": [{"Key": "tag", "Values": UNKNOWN}]}, ".Filters.Key is unknown"),
        ("describe_auto_scaling_groups", {"MaxRecords": 101}, ".MaxRecords cannot be 101"),
        ("describe_alarms", {"PaginationConfig": {"PageSize": 101}}, ".MaxRecords cannot be 101"),
    ],
)
def test_what_is_wrong_is_noticed(method: str, parameters: dict[str, Any], problem: str) -> None:
    call = Call("here", method, parameters, is_complete=True, pages="PaginationConfig" in parameters)
    assert [problem in " ".join(problems) for problems in _by_operation(call).values()] == [True]


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
    yield from _wrong(shape, parameters, is_complete=call.is_complete)


def _wrong(shape: Any, value: Any, place: str = "", *, is_complete: bool = True) -> Iterator[str]:
    """Yields what the model does not allow in a value."""
    if value is UNKNOWN or value is None:
        return
    match shape.type_name, value:
        case "structure", dict():
            named = {key: inner for key, inner in value.items() if key is not UNKNOWN}
            yield from (f"{place}.{key} is unknown" for key in named.keys() - shape.members.keys())
            if is_complete and len(named) == len(value):
                yield from (f"{place}.{key} is missing" for key in set(shape.required_members) - named.keys())
            for key in named.keys() & shape.members.keys():
                yield from _wrong(shape.members[key], named[key], f"{place}.{key}")
        case "list", list():
            if len(value) > shape.metadata.get("max", len(value)):
                yield f"{place} is too long"
            for inner in value:
                yield from _wrong(shape.member, inner, place)
        case "map", dict():
            for key, inner in value.items():
                yield from _wrong(shape.key, key, place)
                yield from _wrong(shape.value, inner, f"{place}.{key}")
        case "string", str():
            if value not in (shape.metadata.get("enum") or [value]):
                yield f"{place} cannot be {value}"
        case (("integer" | "long"), int()):
            if not shape.metadata.get("min", value) <= value <= _most(shape, value):
                yield f"{place} cannot be {value}"
        case _:
            return


def _most(shape: Any, otherwise: int) -> int:
    documented = [int(number.replace(",", "")) for number in _DOCUMENTED_MOST.findall(plain(str(shape.documentation)))]
    return int(min([shape.metadata.get("max", 0) or otherwise, *documented]))
