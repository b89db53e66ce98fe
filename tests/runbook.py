"""Commands of docs/guides/runbook.md, as they are typed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

_RUNBOOK = Path(__file__).parents[1] / "docs" / "guides" / "runbook.md"


def halt_by_hand() -> list[str]:
    """The one command of "Halt without the API", in the words that the shell makes of it. The name of the table is what
    the shell has to look up, ``$(output StateTable)``.
    """
    return shlex.split(_block("Halt without the API").replace("\\\n", " "))


def script_of_halt(stack: str) -> str:
    """The same with the functions that it needs, for the shell."""
    return _block("Before you paste").replace("STACK=Troop", f"STACK={stack}") + _block("Halt without the API")


def _block(heading: str) -> str:
    """The only block of shell commands in a paragraph."""
    text = _RUNBOOK.read_text(encoding="utf-8")
    paragraph = text.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    (block,) = re.findall(r"^```sh\n(.*?)^```", paragraph, re.M | re.S)
    return str(block)
