"""Serves Run Command by :mod:`local.account.run_command`, and checks each of a command's resources.

MiniStack knows only instances of its own EC2. It answers Success for a document that it cannot run, without running
anything. It has no CancelCommand and no ListCommandInvocations, and requires a permission on ``*``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ministack import app
from ministack.core import iam_actions, iam_evaluator
from ministack.core.responses import error_response_json, json_response
from ministack.services import ssm

from ..config import REGION, instance_arn
from ..run_command import Refusal, RunCommand
from ..subjects import backend
from ._wrap import wrap

_SEND = "SendCommand"


def apply(commands: RunCommand) -> None:
    actions: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
        _SEND: commands.send_command,
        "CancelCommand": commands.cancel_command,
        "ListCommands": commands.list_commands,
        "ListCommandInvocations": commands.list_command_invocations,
        "GetCommandInvocation": commands.get_command_invocation,
        "DescribeInstanceInformation": commands.describe_instance_information,
    }

    @wrap(ssm, "handle_request")
    async def handle(original: Any, method: str, path: str, headers: Any, body: Any, query: Any) -> Any:
        name = _action(headers)
        if name not in actions:
            return await original(method, path, headers, body, query)
        request = json.loads(body or b"{}")
        if name == _SEND and (denied := _denial(request, app.extract_access_key_id(headers, query))):
            return error_response_json("AccessDeniedException", denied, 400)
        try:
            return json_response(actions[name](request))
        except Refusal as error:
            return error_response_json(error.code, str(error), 500 if error.code == "InternalServerError" else 400)

    @wrap(iam_actions, "extract_resource_arn")
    def extract(
        original: Callable[..., str],
        service: str,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
        *request: Any,
        **more: Any,
    ) -> str:
        if service == "ssm" and _action(headers) == _SEND:
            return commands.document_arn(str(json.loads(body).get("DocumentName", "")))
        return original(service, method, path, headers, body, *request, **more)


def _action(headers: Mapping[str, str]) -> str:
    return headers.get("x-amz-target", "").rpartition(".")[2]


def _denial(request: Mapping[str, Any], access_key: str) -> str:
    """Returns why the caller may not send to one of the instances; empty if it may to all."""
    for instance_id in request.get("InstanceIds") or ():
        tags = backend("ec2").tags.get(instance_id, {})
        keys = {f"{start}:resourcetag/{name}".lower(): tags[name] for start in ("ssm", "aws") for name in tags}
        arn = instance_arn(instance_id)
        if iam_evaluator.enforce(access_key, f"ssm:{_SEND}", "ssm", REGION, resource_arn=arn, service_context=keys):
            return f"The caller is not authorized to perform: ssm:{_SEND} on resource: {arn}"
    return ""
