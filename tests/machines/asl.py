"""Reads state machine definitions."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "statemachines").glob("*.asl.json"))
HISTORY = 25_000
"""The most events of an execution."""

HANDLERS = {
    "SweepFunction": "sweep",
    "DecideFunction": "decide",
    "TerminateFunction": "terminate",
    "CheckRecoveryFunction": "check_recovery",
    "InjectFunction": "inject",
    "TeardownFunction": "teardown",
    "LaunchFunction": "launch",
    "CellFunction": "cell",
    "FleetFunction": "fleet",
    "ReportFunction": "report",
}
"""Which handler stands behind a substitution."""

MACHINES = {"TeardownMachine": "teardown"}
"""Which machine stands behind a substitution."""

SUBSTITUTIONS = {
    "StartExecutionSync": "arn:aws-cn:states:::states:startExecution.sync:2",
    "StartExecution": "arn:aws-cn:states:::states:startExecution",
    **{name: f"arn:aws-cn:states:cn-north-1:123456789012:stateMachine:{name}-4711" for name in MACHINES},
    "LambdaInvoke": "arn:aws-cn:states:::lambda:invoke",
    "LambdaInvokeWithToken": "arn:aws-cn:states:::lambda:invoke.waitForTaskToken",
    "S3GetObject": "arn:aws-cn:states:::s3:getObject",
    **{name: f"arn:aws-cn:lambda:cn-north-1:123456789012:function:{name}-4711" for name in HANDLERS},
}


@dataclass(frozen=True)
class Level:
    """A machine, or the inside of one of its maps."""

    where: str
    start: str
    states: Mapping[str, Mapping[str, Any]]


def load(path: Path) -> dict[str, Any]:
    definition: dict[str, Any] = json.loads(path.read_text())
    return definition


def substituted(text: str) -> str:
    """A definition as it is deployed. KeyError for a name that nothing is substituted for."""
    return re.sub(r"\$\{(\w+)\}", lambda match: SUBSTITUTIONS[match[1]], text)


def levels(definition: Mapping[str, Any], where: str = "") -> Iterator[Level]:
    """The machine, then everything nested in it."""
    yield Level(where, definition["StartAt"], definition["States"])
    for name, state in definition["States"].items():
        inner = [state[key] for key in ("ItemProcessor", "Iterator") if key in state] + state.get("Branches", [])
        for nested in inner:
            yield from levels(nested, f"{where}{name}/")


def states(definition: Mapping[str, Any], kind: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """All states, nested ones too, or those of a type."""
    for level in levels(definition):
        for name, state in level.states.items():
            if kind in ("", state["Type"]):
                yield level.where + name, state


def following(state: Mapping[str, Any]) -> list[str]:
    """The states that can come next."""
    rules = [state, *state.get("Choices", []), *state.get("Catch", [])]
    names = [rule["Next"] for rule in rules if "Next" in rule]
    return names + ([state["Default"]] if "Default" in state else [])


def reached(start: str, states: Mapping[str, Any], without: str = "") -> set[str]:
    """The states of a level that can be come to from one without passing another."""
    names: set[str] = set()
    todo = [start]
    while todo:
        name = todo.pop()
        if name not in names and name != without:
            names.add(name)
            todo += following(states[name])
    return names


PASSING = frozenset(
    {
        "Lambda.TooManyRequestsException",
        "Lambda.ServiceException",
        "Lambda.SdkClientException",
        "Lambda.AWSLambdaException",
    }
)
"""What a call of a function fails with that no function is to blame for, as Step Functions names it."""

REFUSAL = 5.0
"""Seconds until such a call has failed, with room: no function runs for it."""


def waits(retry: Mapping[str, Any], tries: int | None = None) -> float:
    """Seconds between all tries of a rule, or after the first so many, at most; in the mean it is half of that."""
    attempts = retry["MaxAttempts"] if tries is None else tries
    each = (retry["IntervalSeconds"] * retry["BackoffRate"] ** n for n in range(attempts))
    return float(sum(min(one, retry.get("MaxDelaySeconds", one)) for one in each))


def retriers(task: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Of a task that calls a function: what waits until it can be called, and what tries again when it has failed."""
    passing = task["Retry"][0]
    failed = task["Retry"][-1]
    assert set(passing["ErrorEquals"]) == PASSING
    assert "States.TaskFailed" in failed["ErrorEquals"]
    return passing, failed


def worst(task: Mapping[str, Any]) -> float:
    """Seconds that a call of a function takes at most, with all its retries."""
    passing, failed = retriers(task)
    refused: float = waits(passing) + passing["MaxAttempts"] * REFUSAL
    tried: float = (1 + failed["MaxAttempts"]) * task["TimeoutSeconds"]
    return refused + waits(failed) + tried


def most_events(task: Mapping[str, Any], looks: float, seconds: float) -> float:
    """Events of the history when a task, between a Wait and a Choice, is done over and over for some time.

    Each look may be refused and may fail, and be tried again, up to the last try: the worst number of both is sought.
    Pauses make the looks fewer.

    Args:
        looks: so many fit into the time if none fails.
    """
    passing, failed = retriers(task)
    most = 0.0
    for refused in range(passing["MaxAttempts"] + 1):
        for failures in range(failed["MaxAttempts"] + 1):
            # Wait and Choice: entered and exited. The task: entered, exited, and a try is scheduled, started, ended.
            events = 2 + 2 + 2 + 3 * (1 + refused + failures)
            pauses = (waits(passing, refused) + waits(failed, failures)) / 2
            most = max(most, events * looks / (1 + looks * pauses / seconds))
    return most


def handler_of(state: Mapping[str, Any]) -> str:
    """The handler module a task invokes."""
    return HANDLERS[state["Parameters"]["FunctionName"].strip("${}")]


def calls(definition: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The tasks that invoke a function, nested ones too."""
    invokes = ("${LambdaInvoke}", "${LambdaInvokeWithToken}")
    return ((name, task) for name, task in states(definition, "Task") if task["Resource"] in invokes)


def waits_by_token(task: Mapping[str, Any]) -> bool:
    """Whether a task ends by an answer to its token, instead of that of its function."""
    return bool(task["Resource"] == "${LambdaInvokeWithToken}")


def executions(definition: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The tasks that start an execution of another machine and wait for its end, nested ones too."""
    return ((name, task) for name, task in states(definition, "Task") if task["Resource"] == "${StartExecutionSync}")


def starts(definition: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The tasks that start an execution and go on, nested ones too."""
    return ((name, task) for name, task in states(definition, "Task") if task["Resource"] == "${StartExecution}")


def machine_of(state: Mapping[str, Any]) -> dict[str, Any]:
    """The definition that a task executes."""
    name = MACHINES[state["Parameters"]["StateMachineArn"].strip("${}")]
    return load(ROOT / "statemachines" / f"{name}.asl.json")


def handler_tree(name: str) -> ast.FunctionDef:
    """The source of ``handlers/NAME.py``'s handler."""
    module = ast.parse((ROOT / "functions" / "handlers" / f"{name}.py").read_text())
    return next(node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == "handler")


def payload_tree(name: str) -> ast.AST:
    """The source of what ``handlers/NAME.py`` does with a workflow's payload: its branch for tokens, or all of it."""
    module = ast.parse((ROOT / "functions" / "handlers" / f"{name}.py").read_text())
    branches = [
        node for node in ast.walk(module) if isinstance(node, ast.If) and ast.unparse(node.test) == "'token' in event"
    ]
    return ast.Module(branches[0].body, []) if branches else handler_tree(name)


def returned(name: str) -> set[str]:
    """The fields of what a handler returns."""
    returns = [node.value for node in ast.walk(handler_tree(name)) if isinstance(node, ast.Return)]
    assert returns
    fields: list[set[str]] = []
    for value in returns:
        assert isinstance(value, ast.Dict), f"{name} returns something other than a literal"
        fields.append({key.value for key in value.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)})
    return set.intersection(*fields)


def subscripts(tree: ast.AST, variable: str) -> set[str]:
    """The fields that code takes from a mapping: ``variable["field"]``."""
    return {
        str(node.slice.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id == variable
        and isinstance(node.slice, ast.Constant)
    }


def optional(tree: ast.AST, variable: str) -> set[str]:
    """The fields that code takes from a mapping where they are there: ``variable.get("field", ...)``."""
    return {
        str(node.args[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "get"
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == variable
        and isinstance(node.args[0], ast.Constant)
    }


def function_timeouts() -> dict[str, int]:
    """Seconds by function, as the modules of infra deploy them."""
    timeouts = {}
    for path in sorted((ROOT / "infra").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "functions.make":
                name = node.args[0]
                seconds = next(k.value for k in node.keywords if k.arg == "seconds")
                assert isinstance(name, ast.Constant)
                if isinstance(seconds, ast.Name):
                    timeouts[str(name.value)] = int(getattr(import_module(f"infra.{path.stem}"), seconds.id))
                else:
                    timeouts[str(name.value)] = int(ast.literal_eval(seconds))
    return timeouts


@cache
def error_classes() -> set[str]:
    """Every class of the functions that an exception can be."""
    names = set()
    for path in (ROOT / "functions").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and any(_is_error(base) for base in node.bases):
                names.add(node.name)
    return names


def _is_error(base: ast.expr) -> bool:
    return isinstance(base, ast.Name) and (base.id.endswith(("Error", "Exception")) or base.id == "Exception")
