"""Maps a task of a state machine to its IAM action and resource."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_SERVICES = {"sfn": "states", "eventbridge": "events", "elasticloadbalancingv2": "elasticloadbalancing"}
_S3_ACTIONS = {"ListObjectsV2": "ListBucket", "ListObjects": "ListBucket", "HeadObject": "GetObject"}
_ERROR_PREFIX = {"lambda": "Lambda", "dynamodb": "DynamoDB", "states": "StepFunctions", "s3": "S3"}


@dataclass(frozen=True)
class TaskCall:
    """The call of a task. `denied_as`: name of the error if the role does not allow it."""

    action: str
    resource: str
    denied_as: str


def task_call(resource: str, task_input: dict[str, Any], region: str, account: str) -> TaskCall:
    """Returns the call of a Task's Resource.

    Services that are not listed here have the resource `*`. Roles with specific resources are then refused, so that a
    gap becomes visible.
    """
    if ":function:" in resource:
        return TaskCall("lambda:InvokeFunction", resource, "Lambda.AWSLambdaException")
    parts = resource.split(":")[5:]
    sdk = parts[0] == "aws-sdk"
    service, operation = parts[1:3] if sdk else parts[:2]
    operation = operation.split(".")[0]
    service = _SERVICES.get(service, service)
    operation = operation[0].upper() + operation[1:]
    if (service, operation) == ("lambda", "Invoke"):
        operation = "InvokeFunction"
    if service == "s3":
        operation = _S3_ACTIONS.get(operation, operation)
    return TaskCall(
        f"{service}:{operation}", _arn(service, operation, task_input, region, account), _denied_as(service, sdk)
    )


def _denied_as(service: str, sdk: bool) -> str:
    if service == "lambda":
        return "Lambda.AWSLambdaException"
    if service == "dynamodb" and sdk:
        return "DynamoDb.AccessDeniedException"
    return f"{_ERROR_PREFIX.get(service, service.capitalize())}.AccessDeniedException"


def _arn(service: str, operation: str, task_input: dict[str, Any], region: str, account: str) -> str:
    def first(*names: str) -> str:
        return next((str(task_input[name]) for name in names if task_input.get(name)), "*")

    here = f"{region}:{account}"
    if service == "lambda":
        return _full(first("FunctionName"), f"arn:aws:lambda:{here}:function:")
    if service == "dynamodb":
        table = _full(first("TableName"), f"arn:aws:dynamodb:{here}:table/")
        return f"{table}/index/{task_input['IndexName']}" if task_input.get("IndexName") else table
    if service == "states":
        return first("StateMachineArn", "stateMachineArn", "ExecutionArn", "executionArn")
    if service == "s3":
        bucket = f"arn:aws:s3:::{first('Bucket')}"
        return f"{bucket}/{task_input['Key']}" if task_input.get("Key") and operation != "ListBucket" else bucket
    if service == "sqs":
        return f"arn:aws:sqs:{here}:{first('QueueUrl').rsplit('/', 1)[-1]}"
    if service == "sns":
        return first("TopicArn")
    if service == "events":
        entries = task_input.get("Entries") or [{}]
        return _full(str(entries[0].get("EventBusName", "default")), f"arn:aws:events:{here}:event-bus/")
    return "*"


def _full(name: str, prefix: str) -> str:
    return name if name.startswith("arn:") else f"{prefix}{name}"
