"""`make deploy` removes no function that a running execution still calls."""

from __future__ import annotations

import pytest

from cli.shared.errors import CliError
from lifecycle.resources import Resource
from tests.unit.lifecycle.world import DEPLOYED, Run, World

MACHINE = "arn:aws:states:eu-west-1:111122223333:stateMachine:Chaos-1"
EXECUTION = "arn:aws:states:eu-west-1:111122223333:execution:Chaos-1:e1"


@pytest.fixture
def updated(world: World) -> World:
    """A deployment whose function ``Decide`` the new template does not have."""
    world.status = "UPDATE_COMPLETE"
    world.resources = DEPLOYED | {"Machine": Resource("AWS::StepFunctions::StateMachine", MACHINE)}
    world.definitions = {MACHINE: '{"Resource": "arn:aws:lambda:eu-west-1:111122223333:function:decide"}'}
    return world


def test_an_execution_that_calls_it_ends_the_update_before_anything_changes(run: Run, updated: World) -> None:
    updated.running = {MACHINE: [EXECUTION]}
    with pytest.raises(CliError, match=f"no functions decide.*{EXECUTION}.*Wait until they have ended"):
        run(yes=True)
    assert [arguments[0] for arguments in updated.done] == ["synth"]


def test_without_executions_it_is_removed(run: Run, updated: World) -> None:
    run(yes=True)
    assert [arguments[0] for arguments in updated.done] == ["synth", "deploy"]


def test_executions_that_call_others_do_not_matter(run: Run, updated: World) -> None:
    updated.running = {MACHINE: [EXECUTION]}
    updated.definitions[MACHINE] = updated.definitions[MACHINE].replace("decide", "another")
    run(yes=True)
    assert [arguments[0] for arguments in updated.done] == ["synth", "deploy"]
