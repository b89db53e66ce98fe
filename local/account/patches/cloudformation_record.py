"""Keeps CloudFormation's record of deleted stacks and resources, which AWS answers for 90 days.

MiniStack forgets a deleted stack when another one gets its name, and each resource that left a stack. On AWS,
ListStacks lists deleted stacks, and ListStackResources lists what a stack had: deleted, or retained (DELETE_SKIPPED).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

from ministack.services import cloudformation
from ministack.services.cloudformation import handlers, stacks

from ._wrap import wrap

_GONE = ("DELETE_COMPLETE", "DELETE_SKIPPED")
_STACK = "AWS::CloudFormation::Stack"
_LISTING: ContextVar[bool] = ContextVar("listing", default=False)


def apply() -> None:
    deleted: Any = type(cloudformation._stacks)()  # by account and region, as the stacks are

    @wrap(stacks, "_add_event")
    def add(original: Callable[..., Any], stack_id: str, name: str, *event: Any, **more: Any) -> Any:
        if event[:3] == (name, _STACK, "DELETE_COMPLETE"):
            deleted[stack_id] = cloudformation._stacks[name] | {"DeletionTime": stacks.now_iso()}
        return original(stack_id, name, *event, **more)

    @wrap(handlers, "_resolve_stack")
    def resolve(original: Callable[[str], Any], name: str) -> Any:
        stack = original(name) or deleted.get(name)
        return stack | {"_resources": _gone(stack) | stack["_resources"]} if stack and _LISTING.get() else stack

    for action in ("ListStackResources", "DescribeStackResources"):
        handlers._ACTION_HANDLERS[action] = _listing(handlers._ACTION_HANDLERS[action])

    def list_stacks(params: Mapping[str, Any]) -> Any:
        present = {stack["StackId"]: stack for stack in cloudformation._stacks.values()}
        statuses = handlers._extract_stack_status_filters(params)
        every = [s for s in (dict(deleted.items()) | present).values() if not statuses or s["StackStatus"] in statuses]
        page, token, problem = handlers._page(every, params, "ListStacks")
        if problem:
            return problem
        members = "".join(f"<member>{_summary(stack)}</member>" for stack in page)
        result = f"<ListStacksResult><StackSummaries>{members}</StackSummaries>{token}</ListStacksResult>"
        return handlers._xml(200, "ListStacksResponse", result)

    handlers._ACTION_HANDLERS["ListStacks"] = list_stacks


def _listing(handler: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def answered(params: Any) -> Any:
        token = _LISTING.set(True)
        try:
            return handler(params)
        finally:
            _LISTING.reset(token)

    return answered


def _gone(stack: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the last state of each resource that has left the stack, by logical id."""
    last = {
        event["LogicalResourceId"]: event
        for event in cloudformation._stack_events.get(stack["StackId"], [])
        if event["ResourceType"] != _STACK and event.get("PhysicalResourceId")
    }
    return {logical: event for logical, event in last.items() if event["ResourceStatus"] in _GONE}


def _summary(stack: Mapping[str, Any]) -> str:
    values = {key: stack.get(key) for key in ("StackName", "StackId", "StackStatus", "CreationTime", "DeletionTime")}
    return "".join(f"<{key}>{handlers._esc(value)}</{key}>" for key, value in values.items() if value)
