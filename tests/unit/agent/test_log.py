"""The agent's lines say where they come from, so that a run's id finds them among all others."""

from __future__ import annotations

import re

import pytest

from agent import log


def test_lines_say_what_is_known_of_their_node(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "_about", {})
    log.say("not yet")
    log.about(run="r", cell="c001")
    log.about(node="i-1", phase="load")
    log.say("at work")
    log.about(phase=None)
    log.say("over")
    lines = [re.sub(r"^\S+Z ", "", line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "troop: not yet",
        "troop run=r cell=c001 node=i-1 phase=load: at work",
        "troop run=r cell=c001 node=i-1: over",
    ]
