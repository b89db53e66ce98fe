"""Refuses definitions of state machines that Step Functions refuses, and lists of executions of unknown machines.

MiniStack creates a machine from any text, fails only when it reaches an unknown state, and passes the input of some
unknown resources on as their result. Checked are the types of states, their transitions and the resources of tasks:
operations of the SDK by the models of all APIs, and integrations by name. Those that MiniStack has not fail when they
are reached.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import botocore
from ministack.services import stepfunctions
from ministack.services.cloudformation import provisioners
from moto.core.utils import get_service_model

from ..schemas import Schemas
from ._wrap import wrap

_FUNCTION = re.compile(r"arn:[\w-]+:(?:lambda:[\w-]+:\d{12}:function:[\w$:-]+|states:[\w-]+:\d{12}:activity:\S+)")
_SDK = re.compile(r"arn:[\w-]+:states:[\w-]*:\d*:aws-sdk:(\w+):(\w+)(?:\.waitForTaskToken)?")
_INTEGRATION = re.compile(r"arn:[\w-]+:states:::(([\w-]+):\w+)(?:\.sync(?::2)?|\.waitForTaskToken)?")
_OWN = frozenset({"lambda:invoke", "states:startExecution"})
"""Integrations that MiniStack has besides those of its table."""
_OTHERS = re.compile(
    "apigateway|athena|batch|bedrock|codebuild|databrew|eks|elasticmapreduce|emr-containers|emr-serverless|glue|http|"
    "mediaconvert|sagemaker"
)
"""Services with integrations of which MiniStack has none ("Integrating services with Step Functions")."""
_SERVICE_ID = re.compile(rb'"serviceId": ?"([^"]+)"')
_HEAD = 4096


def apply(schemas: Schemas) -> None:
    problems = partial(_problems, frozenset(_types(schemas)))

    @wrap(stepfunctions, "_validate_definition_jsonata")
    def definition(original: Callable[[Any], str | None], text: Any) -> str | None:
        return next(problems(text), None) or original(text)

    @wrap(provisioners, "_sfn_definition")
    def resolved(original: Callable[[Any], Any], properties: Any) -> Any:
        text = original(properties)
        if problem := next(problems(text), None):
            raise ValueError(f"Invalid State Machine Definition: '{problem}'")
        return text

    @wrap(stepfunctions, "_validate_state_machine_definition")
    def validate(_original: Callable[..., Any], data: dict[str, Any]) -> Any:
        problem = stepfunctions._validate_definition_jsonata(data.get("definition"))
        diagnostics = [{"severity": "ERROR", "code": problem.partition(":")[0], "message": problem}] if problem else []
        return stepfunctions.json_response({"result": "FAIL" if problem else "OK", "diagnostics": diagnostics})

    @wrap(stepfunctions, "_list_executions")
    def executions(original: Callable[..., Any], data: dict[str, Any]) -> Any:
        arn = data.get("stateMachineArn")
        if arn and stepfunctions._resolve_state_machine_arn(arn) is None:
            message = f"State Machine Does Not Exist: '{arn}'"
            return stepfunctions.error_response_json("StateMachineDoesNotExist", message, 400)
        return original(data)


def _types(schemas: Schemas) -> list[str]:
    document = schemas.part("other/step_functions/statemachine")
    return list(document["definitions"]["state"]["properties"]["Type"]["enum"])


def _problems(types: frozenset[str], text: Any) -> Iterator[str]:
    try:
        machine = json.loads(text)
    except (TypeError, ValueError):
        yield "INVALID_JSON_DESCRIPTION: the definition is not JSON"
        return
    yield from _machine_problems(types, machine, "")


def _machine_problems(types: frozenset[str], machine: Any, place: str) -> Iterator[str]:
    states = machine.get("States") if isinstance(machine, dict) else None
    if not isinstance(states, dict) or not states:
        yield f"SCHEMA_VALIDATION_FAILED: there are no States at {place or '/'}"
        return
    if machine.get("StartAt") not in states:
        yield f"MISSING_TRANSITION_TARGET: StartAt names no state at {place or '/'}"
    for name, state in states.items():
        here = f"{place}/States/{name}"
        if not isinstance(state, dict) or state.get("Type") not in types:
            yield f"SCHEMA_VALIDATION_FAILED: the Type of a state is none of {sorted(types)} at {here}"
            continue
        others = [one for one in (*state.get("Choices", ()), *state.get("Catch", ())) if isinstance(one, dict)]
        for target in (state.get("Next"), state.get("Default"), *(one.get("Next") for one in others)):
            if target is not None and target not in states:
                yield f"MISSING_TRANSITION_TARGET: {target} is no state at {here}"
        if state["Type"] == "Task" and not _is_resource(str(state.get("Resource"))):
            yield f"SCHEMA_VALIDATION_FAILED: the resource {state.get('Resource')} is not recognized at {here}"
        inner = [state.get("ItemProcessor") or state.get("Iterator")] if state["Type"] == "Map" else []
        for branch in state.get("Branches", ()) if state["Type"] == "Parallel" else inner:
            yield from _machine_problems(types, branch, here)


def _is_resource(arn: str) -> bool:
    if match := _SDK.fullmatch(arn):
        return match[2].lower() in _operations(match[1])
    if match := _INTEGRATION.fullmatch(arn):
        known = {one.partition(":::")[2] for one in stepfunctions._SERVICE_DISPATCH}
        return match[1] in known | _OWN or bool(_OTHERS.fullmatch(match[2]))
    return _FUNCTION.fullmatch(arn) is not None


@cache
def _operations(service: str) -> frozenset[str]:
    """Returns the operations of a service, in lower case, by the SDK's name of it."""
    folder = _folders().get(service)
    return frozenset(map(str.lower, get_service_model(folder).operation_names)) if folder else frozenset()


@cache
def _folders() -> dict[str, str]:
    """Returns the folder of each API's model by the name that the SDK for Java derives from its id."""
    folders = {}
    for path in Path(botocore.__file__).parent.glob("data/*/*/service-2.json*"):
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            service_id = _SERVICE_ID.search(file.read(_HEAD))
        if service_id:
            name = re.sub(r"\W", "", service_id[1].decode()).lower()
            folders[name] = folders[name.removesuffix("service")] = path.parent.parent.name
    return folders
