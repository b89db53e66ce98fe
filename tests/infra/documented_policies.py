"""Policies as the documents have them, evaluated by IAM's rules as local AWS has these."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from infra import ROOT
from local.project import ACCOUNT_PYTHON

_ANSWER = """
import json, sys
request = json.load(sys.stdin)
print(json.dumps([may(request["policy"], *call) for call in request["calls"]]))
"""


def policy_below(document: str, heading: str) -> dict[str, Any]:
    """Returns the only JSON block of a section in a document."""
    section = (ROOT / "docs" / document).read_text(encoding="utf-8").partition(heading)[2].partition("\n## ")[0]
    (block,) = re.findall(r"^```json\n(.*?)^```", section, re.M | re.S)
    policy: dict[str, Any] = json.loads(block)
    return policy


def evaluate(may: str, policy: Mapping[str, Any], calls: Sequence[Sequence[Any]]) -> list[bool]:
    """Returns for each call whether the policy allows it.

    Args:
        may: the source of a function ``may(policy, *call)`` for the Python of local AWS.
    """
    done = subprocess.run(
        [str(ACCOUNT_PYTHON), "-c", may + _ANSWER],
        input=json.dumps({"policy": policy, "calls": calls}),
        text=True,
        capture_output=True,
        check=True,
    )
    answers: list[bool] = json.loads(done.stdout)
    return answers
