"""Every state machine, held against Amazon's language, the functions it calls and the service's limits."""

from __future__ import annotations

import ast
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.machines import asl, expressions
from tests.machines.asl import FILES, ROOT
from tests.patience import PATIENCE

each_machine = pytest.mark.parametrize("path", FILES, ids=lambda p: p.name.partition(".")[0])


def test_there_are_machines() -> None:
    names = ["benchmark", "chaos", "fleet", "on_demand", "teardown"]
    assert [path.name for path in FILES] == [f"{name}.asl.json" for name in names]


def _lint(*paths: Path) -> tuple[int, str]:
    environment = {**os.environ, "PATH": f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    command = [str(ROOT / "node_modules" / ".bin" / "asl-validator")]
    command += [word for path in paths for word in ("--json-path", str(path))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_linter_finds_nothing_before_and_after_substitution(tmp_path: Path) -> None:
    deployed, broken = [], []
    for path in FILES:
        deployed.append(tmp_path / path.name)
        deployed[-1].write_text(asl.substituted(path.read_text()))
        broken.append(tmp_path / f"broken-{path.name}")
        broken[-1].write_text(path.read_text().replace('"Next": "', '"Next": "No', 1))
    for file in (*FILES, *deployed):
        json.loads(file.read_text())
    code, words = _lint(*FILES, *deployed)  # all at once: each call starts a Node
    assert code == 0, words
    code, words = _lint(*broken)
    assert code != 0, "the linter would find a fault"
    assert [path.name for path in broken if f'{path.name}" is invalid' not in words] == []


@each_machine
def test_substitutions_are_whole_values(path: Path) -> None:
    for value in _strings(json.loads(path.read_text())):
        assert "${" not in value or (value.startswith("${") and value.endswith("}")), value


def _strings(value: Any) -> Iterator[str]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inner:
        yield from _strings(one)
    if isinstance(value, str):
        yield value


@each_machine
def test_every_next_exists_and_every_state_is_reached(path: Path) -> None:
    for level in asl.levels(asl.load(path)):
        reached, todo = set(), [level.start]
        while todo:
            name = todo.pop()
            assert name in level.states, f"{level.where}{name} does not exist"
            if name not in reached:
                reached.add(name)
                todo += asl.following(level.states[name])
        assert reached == set(level.states)


@each_machine
def test_every_expression_parses(path: Path) -> None:
    texts = list(expressions.expressions(asl.load(path)))
    assert texts
    for expression in texts:
        expressions.check(expression)


@pytest.mark.parametrize(
    "bad", ["$.a.", "$a", "a.b", "$.a[", "States.format('{}', $.a)", "States.Format('{}', $.a", "{% $x := %}", "{% 1"]
)
def test_malformed_expression_is_detected(bad: str) -> None:
    with pytest.raises(expressions.BadExpression):
        expressions.check(bad)


@pytest.mark.parametrize("good", ["$", "$$.Execution.Id", "$.a.b[0]", "States.Format('{}, {}', $.a, 1)", "{% $a.b %}"])
def test_an_expression_that_parses_is_not(good: str) -> None:
    expressions.check(good)


@each_machine
def test_tasks_have_timeout_retry_with_jitter_and_catch(path: Path) -> None:
    tasks = list(asl.states(asl.load(path), "Task"))
    assert tasks
    for name, task in tasks:
        assert task["TimeoutSeconds"] > 0, name
        assert [c["ErrorEquals"] for c in task["Catch"]][-1] == ["States.ALL"], name
        assert any("States.TaskFailed" in r["ErrorEquals"] for r in task["Retry"]), name
        if asl.waits_by_token(task):  # no answer in that time is usual: the state is entered again, with a new token
            assert task["Catch"][0] == {
                "ErrorEquals": ["States.Timeout"],
                "ResultPath": None,
                "Next": name.split("/")[-1],
            }
        else:
            assert any("States.Timeout" in r["ErrorEquals"] for r in task["Retry"]), name
    for name, state in asl.states(asl.load(path)):
        for retrier in state.get("Retry", []):
            if retrier.get("MaxAttempts") != 0:
                assert retrier["JitterStrategy"] == "FULL", name
                assert retrier["MaxAttempts"] >= 1, name
        if state["Type"] == "Map":
            assert state["Catch"], name
            assert state["Retry"], name


@each_machine
def test_tasks_wait_longer_than_their_functions_run(path: Path) -> None:
    timeouts = asl.function_timeouts()
    for name, task in asl.calls(asl.load(path)):
        if task["Parameters"].get("InvocationType") == "Event" or asl.waits_by_token(task):  # wait for no function
            continue
        assert task["TimeoutSeconds"] >= timeouts[asl.handler_of(task)] + 10, name


@each_machine
def test_tasks_wait_longer_than_their_machines_run(path: Path) -> None:
    for name, task in asl.executions(asl.load(path)):
        assert task["TimeoutSeconds"] >= asl.machine_of(task)["TimeoutSeconds"] + 60, name


@each_machine
def test_every_task_is_a_call_or_an_execution(path: Path) -> None:
    definition = asl.load(path)
    known = {name for name, _ in (*asl.calls(definition), *asl.executions(definition), *asl.starts(definition))}
    assert known == {name for name, _ in asl.states(definition, "Task")}


@each_machine
def test_a_function_that_cannot_be_called_now_is_waited_for(path: Path) -> None:
    """A new account runs ten functions at once. The first rule that names an error is the only one that counts."""
    for name, task in asl.calls(asl.load(path)):
        passing, *others = task["Retry"]
        assert set(passing["ErrorEquals"]) == asl.PASSING, name
        assert passing["IntervalSeconds"] >= 10, name
        assert not asl.PASSING & {error for rule in others for error in rule["ErrorEquals"]}, name
        # Lambda takes an event whatever its functions do; a fleet's look that fails is made again two minutes later.
        soon = task["Parameters"].get("InvocationType") == "Event" or task["Catch"][-1]["Next"] == "CheckLater"
        assert asl.waits(passing) >= (30 if soon else 180), name


@each_machine
def test_error_names_exist(path: Path) -> None:
    known = asl.error_classes() | asl.PASSING
    known |= {"States.ALL", "States.TaskFailed", "States.Timeout", "States.ItemReaderFailed"}
    assert "SweepIncompleteError" in known
    for name, state in asl.states(asl.load(path)):
        for rule in state.get("Retry", []) + state.get("Catch", []):
            assert set(rule["ErrorEquals"]) <= known, name


@each_machine
def test_function_returns_the_fields_of_its_result_selector(path: Path) -> None:
    for name, task in asl.calls(asl.load(path)):
        if asl.waits_by_token(task):
            continue
        taken = {read for e in expressions.expressions(task.get("ResultSelector", {})) for read in expressions.reads(e)}
        fields = {path.removeprefix("Payload.") for path in taken if path.startswith("Payload.")}
        assert fields == {path.removeprefix("Payload.") for path in taken}, name
        assert fields <= asl.returned(asl.handler_of(task)), name


@each_machine
def test_who_answers_a_token_sends_the_fields_that_the_task_selects(path: Path) -> None:
    answers = [
        node.args[1]
        for flow in ("recovery_check", "injector")  # either may answer the token of the other's step
        for node in ast.walk(ast.parse((ROOT / "functions" / "troop" / "chaos" / "flows" / f"{flow}.py").read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "self.tokens.succeed"
    ]
    assert len(answers) == 2
    for name, task in asl.calls(asl.load(path)):
        if asl.waits_by_token(task):
            selected = task["ResultSelector"]
            taken = {read for e in expressions.expressions(selected) for read in expressions.reads(e)}
            for answer in answers:
                assert isinstance(answer, ast.Dict)
                assert {key.value for key in answer.keys if isinstance(key, ast.Constant)} == taken, name
            assert task["Parameters"]["Payload"]["token.$"] == "$$.Task.Token", name


@each_machine
def test_task_passes_the_fields_that_its_function_reads(path: Path) -> None:
    for name, task in asl.calls(asl.load(path)):
        handler = asl.payload_tree(asl.handler_of(task))
        required, welcome = asl.subscripts(handler, "event"), asl.optional(handler, "event")
        payload = task["Parameters"].get("Payload")
        if payload is None:
            assert task["Parameters"]["Payload.$"] == "$", name  # the item itself: tests/machines/test_chaos.py
        else:
            assert required <= {key.removesuffix(".$") for key in payload} <= required | welcome, name


INPUTS = {
    ("chaos", ""): frozenset({"calendar"}),
    ("benchmark", ""): frozenset({"run"}),
    ("fleet", ""): frozenset({"run"}),
    ("benchmark", "Cells/"): frozenset({"run", "cell", "error"}),
}
"""The fields of what a machine, or a map's item, begins with, where the functions do not take it as a whole."""


@each_machine
def test_every_state_finds_in_its_input_what_it_reads(path: Path) -> None:
    definition = asl.load(path)
    for level in asl.levels(definition):
        # Of a map's item, and of what the API starts a machine with, the functions know the shape.
        fields = INPUTS.get((path.name.partition(".")[0], level.where), frozenset({""}))
        seen: set[tuple[str, frozenset[str]]] = set()
        todo = [(level.start, fields)]
        while todo:
            at = todo.pop()
            if at in seen:
                continue
            seen.add(at)
            todo += _walk(level.where, at[0], level.states[at[0]], at[1])


def _walk(where: str, name: str, state: Mapping[str, Any], fields: frozenset[str]) -> list[tuple[str, frozenset[str]]]:
    """Checks a state's reads against the fields its input has; what follows, each with the fields it gets.

    The field "" stands for an input of any shape (a map's item).
    """
    own = {k: v for k, v in state.items() if k not in ("ResultSelector", "ResultPath", "ItemProcessor", "Catch")}
    for rule in own.pop("Choices", []):
        assert rule.get("IsPresent") is not None or _has(fields, rule["Variable"][2:]), f"{where}{name}: {rule}"
        fields_there = fields | {rule["Variable"][2:]} if rule.get("IsPresent") else fields
        if fields_there != fields:
            fields = fields_there  # only the branch that is taken reads it
    for expression in expressions.expressions(own):
        for read in expressions.reads(expression):
            assert _has(fields, read), f"{where}{name} reads {read!r}, has {sorted(fields)}"
    after = fields
    if state["Type"] == "Task":
        path = state.get("ResultPath", "$")
        result = {key.removesuffix(".$") for key in state["ResultSelector"]} if path else set()
        after = frozenset(result) if path == "$" else fields | {f"{path[2:]}.{field}" for field in result}
    if state["Type"] == "Pass" and "Result" in state:
        after = fields | {f"{state['ResultPath'][2:]}.{field}" for field in state["Result"]}
    caught = [
        (
            rule["Next"],
            fields | {f"{rule['ResultPath'][2:]}.{part}" for part in ("Error", "Cause") if rule["ResultPath"]},
        )
        for rule in state.get("Catch", [])
    ]
    catches = {rule["Next"] for rule in state.get("Catch", [])}
    plain = {k: v for k, v in state.items() if k != "Catch"}
    return caught + [(n, after) for n in asl.following(plain) if n not in catches or n == state.get("Next")]


def _has(fields: frozenset[str], read: str) -> bool:
    return (
        "" in fields
        or read == ""
        or any(g == read or g.startswith(read + ".") or read.startswith(g + ".") for g in fields)
    )
