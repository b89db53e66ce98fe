"""Asks questions one by one, and writes the answers into a file after each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, WaiterError

from cli.prove.ledger import replace_text
from cli.prove.model import Answer, Question, Verdict
from cli.prove.redaction import Redaction
from cli.shared.errors import CliError
from troop.shared import moments
from troop.shared.version import VERSION

FORMAT = "troop.prove/1"
_FAILURES = (BotoCoreError, ClientError, WaiterError, CliError, KeyError, ValueError)


def answer(question: Question, probe: Callable[[], Any], *, local: bool) -> Answer:
    """Answers one question. A step that fails is an answer, too.

    Args:
        local: whether AWS is local AWS, which proves nothing about AWS.
    """
    try:
        evidence = probe()
        verdict, detail = question.judge(evidence)
    except _FAILURES as error:
        text = " ".join(str(error).split())
        if local:
            return Answer(question, Verdict.ONLY_AWS, f"local AWS cannot run this step: {text}")
        return Answer(question, Verdict.FAILED, text)
    if local:
        return Answer(question, Verdict.ONLY_AWS, f"local AWS: {verdict.value}, {detail}", evidence)
    return Answer(question, verdict, detail, evidence)


def write(
    path: Path, answers: Iterable[Answer], redaction: Redaction, *, region: str, local: bool, at: datetime
) -> None:
    """Writes all answers so far, redacted, in place of the file."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "at": moments.iso(at),
        "region": region,
        "local": local,
        "answers": [redaction.document(dict(one.as_json())) for one in answers],
    }
    replace_text(path, json.dumps(document, indent=2) + "\n")
