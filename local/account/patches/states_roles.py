"""Checks the role of a state machine before each task; MiniStack allows state machines everything.

It also checks StartExecution on the machine itself for a Distributed Map, and reading its items from S3. Calls to EC2,
Auto Scaling and load balancing are refused: MiniStack would serve them, but the account's instances are in moto.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ministack.core.iam_evaluator import EvalContext, _gather_role_policies, evaluate
from ministack.services import stepfunctions

from ..decisions import log
from ._executions import current, top
from ._task_actions import TaskCall, task_call
from ._wrap import wrap

_ELSEWHERE = ("ec2", "autoscaling", "elasticloadbalancing", "elasticloadbalancingv2")


def apply() -> None:
    @wrap(stepfunctions, "_invoke_resource")
    def invoke(original: Callable[..., Any], resource: str, task_input: Any) -> Any:
        _check_task(resource, task_input)
        return original(resource, task_input)

    @wrap(stepfunctions, "_invoke_with_callback")
    def callback(original: Callable[..., Any], resource: str, task_input: Any, *rest: Any) -> Any:
        _check_task(resource, task_input)
        return original(resource, task_input, *rest)

    @wrap(stepfunctions, "_run_distributed_map")
    def distributed(original: Callable[..., Any], *args: Any) -> Any:
        execution = current()
        if execution is not None:
            machine = top(execution)["stateMachineArn"]
            _check(TaskCall("states:StartExecution", machine, "StepFunctions.AccessDeniedException"))
        return original(*args)

    @wrap(stepfunctions, "_read_map_items")
    def read_items(original: Callable[..., Any], reader: dict[str, Any], effective: Any, context: Any) -> Any:
        parameters = reader.get("Parameters") or reader.get("Arguments") or {}
        place = stepfunctions._resolve_params_obj(parameters, effective, context)
        action, arn = "s3:GetObject", f"arn:aws:s3:::{place.get('Bucket')}/{place.get('Key')}"
        if reader.get("Resource", "").endswith("listObjectsV2"):
            action, arn = "s3:ListBucket", f"arn:aws:s3:::{place.get('Bucket')}"
        _check(TaskCall(action, arn, "States.ItemReaderFailed"))
        return original(reader, effective, context)


def _check_task(resource: str, task_input: Any) -> None:
    execution = current()
    if execution is None or ":activity:" in resource:
        return
    _, _, _, region, account, *_ = top(execution)["stateMachineArn"].split(":")
    call = task_call(resource, task_input if isinstance(task_input, dict) else {}, region, account)
    if call.action.split(":")[0] in _ELSEWHERE:
        raise stepfunctions._ExecutionError(
            "States.Runtime",
            f"{call.action} cannot be called from a state machine in the local account: the instances live behind "
            "another endpoint, which only Lambda functions and clients reach",
        )
    _check(call)


def _check(call: TaskCall) -> None:
    execution = current()
    if execution is None:
        return
    owner = top(execution)
    _, _, _, region, account, *_ = owner["stateMachineArn"].split(":")
    role = stepfunctions._state_machines[owner["stateMachineArn"]]["roleArn"].rsplit("/", 1)[-1]
    caller = f"arn:aws:sts::{account}:assumed-role/{role}/{owner['name'][:32]}"
    context = EvalContext(caller, "AssumedRole", account, call.action, call.resource, region)
    decision = evaluate(context, _gather_role_policies(role, account)).decision
    log.record(caller, call.action, call.resource, decision, "states")
    if decision != "Allow":
        reason = (
            "with an explicit deny in an identity-based policy"
            if decision == "Deny"
            else f"because no identity-based policy allows the {call.action} action"
        )
        raise stepfunctions._ExecutionError(
            call.denied_as,
            f"User: {caller} is not authorized to perform: {call.action} on resource: {call.resource} {reason}",
        )
