"""Reads from a document the commands that run on local AWS, and the output that it shows.

A comment before a block of the shell says what becomes of it: ``<!-- runs on local AWS -->``, ``<!-- runs on local AWS
until it prints this -->`` or ``<!-- not on local AWS: REASON -->``. Blocks without one do not run. The output is in a
console block right behind it, or in the block itself, between the lines with a prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(
    r"^<!-- (?:runs (?P<on>on local AWS(?P<again> until it prints this)?)|not on local AWS: (?P<skipped>.+?)) -->\n+"
    r"```(?P<kind>sh|console)\n(?P<text>.*?)^```\n(?:\n```console\n(?P<shown>(?!\$ ).*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_OMITTED = "..."


@dataclass(frozen=True)
class Block:
    """Commands of a document.

    Args:
        heading: the heading above.
        script: what a reader pastes into a shell.
        shown: lines of the output, in their order.
        repeats: whether a reader repeats the commands until their output is as shown.
        skipped: why local AWS cannot run them; empty if it can.
    """

    heading: str
    script: str
    shown: tuple[str, ...] = ()
    repeats: bool = False
    skipped: str = ""

    def unmet(self, code: int, output: str) -> str:
        """Returns what a result lacks; an empty text if it is as shown.

        Only words without a digit are compared, because ids, times and figures differ; empty lines do not count. In the
        document, `...` stands for lines that it omits, or for the end of a line.
        """
        if code:
            return f"exit code {code}"
        printed = "".join(f"{_shape(line)}\n" for line in output.splitlines() if line.strip())
        pattern = ""
        for line in filter(str.strip, self.shown):
            pattern += _pattern(line)
            if not re.match(pattern, printed):
                return f"the output lacks: {line.strip()}"
        unexpected = "" if re.fullmatch(pattern, printed) or not self.shown else self.shown[-1].strip()
        return f"the output has more than: {unexpected}" if unexpected else ""


def read(document: Path) -> tuple[Block, ...]:
    """Returns the marked blocks of a document, in their order."""
    text = document.read_text(encoding="utf-8")
    return tuple(_block(text, match) for match in _BLOCK.finditer(text))


def _block(text: str, match: re.Match[str]) -> Block:
    headings = _HEADING.findall(text, 0, match.start())
    script, shown = match["text"].rstrip("\n"), (match["shown"] or "").splitlines()
    if match["kind"] == "console":
        script, shown = _typed(script.splitlines())
    return Block(headings[-1] if headings else "", script, tuple(shown), bool(match["again"]), match["skipped"] or "")


def _typed(lines: Iterable[str]) -> tuple[str, list[str]]:
    """Separates what is typed after a prompt, and continued after a backslash, from what is printed."""
    typed: list[str] = []
    shown = []
    for line in lines:
        if line.startswith("$ "):
            typed.append(line[2:])
        elif typed and typed[-1].endswith("\\"):
            typed.append(line)
        else:
            shown.append(line)
    return "\n".join(typed), shown


def _pattern(line: str) -> str:
    """Returns the regular expression of a line that a document shows."""
    if line.strip() == _OMITTED:
        return r"(?:.*\n)*"
    rest = ".*" if line.endswith(_OMITTED) else ""
    return f"{re.escape(_shape(line.removesuffix(_OMITTED)))}{rest}\n"


def _shape(line: str) -> str:
    return " ".join("#" if re.search(r"\d", word) else word for word in line.split())
