"""Counts words per sentence of what people read: documents, help texts and error messages.

``prose.py`` prints a line for each source: sentences, mean, share over 30 words. ``--long`` lists the long sentences,
``--check`` prints only the sources that exceed their bounds, and exits with 1 if any does. A list item is a sentence.
Code blocks, tables, headings and link targets do not count; inline code counts as one word.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

MEAN = 17
LONG = 30
"""Words: the bounds of a source's mean and of its longest sentence."""
LONG_SHARE = 0.05
"""The share of a document's sentences that may be longer than :data:`LONG`. README, help and errors have none."""
CODE = ("cli", "functions", "infra", "lifecycle", "agent")
"""Folders whose error messages people read."""

_END = re.compile(r"(?<=[.!?])[\")]?\s+(?=[\"(A-Z`0-9])")
_WORD = re.compile(r"[^\W_][\w'./:%$@*~=+-]*|`")


def sentences(text: str) -> list[str]:
    """Splits a paragraph into sentences."""
    return [part for part in _END.split(" ".join(text.split())) if _WORD.search(part)]


def length(sentence: str) -> int:
    """Counts the words of a sentence."""
    return len(_WORD.findall(sentence))


def paragraphs(markdown: str) -> Iterator[str]:
    """Lists the paragraphs and list items of a document as plain text."""
    skipping = 0
    for token in MarkdownIt("commonmark").enable("table").parse(markdown):
        if token.type in ("table_open", "heading_open"):
            skipping += 1
        elif token.type in ("table_close", "heading_close"):
            skipping -= 1
        elif token.type == "inline" and not skipping:
            yield _plain(token.children or [])


def _plain(tokens: Iterable[Token]) -> str:
    parts = {"text": str, "code_inline": lambda _: "code", "softbreak": lambda _: " ", "hardbreak": lambda _: " "}
    return "".join(parts[token.type](token.content) for token in tokens if token.type in parts)


def commands() -> Iterator[tuple[str, Any]]:
    """Lists every command and group with its words, such as ``troop bench run``."""
    from typer.main import get_command

    from cli.app import app
    from cli.shared.lazy import LazyCommand

    pending: list[tuple[str, Any]] = [("troop", get_command(app))]
    while pending:
        words, command = pending.pop()
        if isinstance(command, LazyCommand):
            command = command.load()
        yield words, command
        pending.extend((f"{words} {name}", child) for name, child in getattr(command, "commands", {}).items())


def help_texts() -> Iterator[str]:
    """Lists the texts of every ``--help``: of commands, arguments and options."""
    for _, command in commands():
        yield from re.split(r"\n\s*\n", command.help or "")
        yield from (str(getattr(parameter, "help", None) or "") for parameter in command.params)


def error_messages(folders: Iterable[str]) -> Iterator[str]:
    """Lists the texts that the code raises errors with; a placeholder counts as one word."""
    files = subprocess.run(["git", "ls-files", "-z", "--", *folders], capture_output=True, text=True, check=True)
    for path in files.stdout.split("\0"):
        if path.endswith(".py"):
            for node in ast.walk(ast.parse(Path(path).read_text(encoding="utf-8"))):
                if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                    yield from filter(None, map(_literal, node.exc.args))


def _literal(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_literal(part) or "x" for part in parts)
    return ""


def sources(only: Collection[str] = ()) -> dict[str, tuple[list[str], float]]:
    """Collects the sentences of every source, each with the share of long sentences that it may have.

    ``only`` has names of sources, or paths of changed files. A changed module of the command selects its help and the
    errors, one of other code the errors. Without any, all sources count.
    """
    root = Path(__file__).parent.parent
    documents = [
        path for folder in (".", "docs/*", "benchmarks/*", "fleets/*") for path in sorted(root.glob(f"{folder}/*.md"))
    ]
    texts: dict[str, tuple[Iterable[str], float]] = {
        str(path.relative_to(root)): (
            paragraphs(path.read_text(encoding="utf-8")),
            0 if path == root / "README.md" else LONG_SHARE,
        )
        for path in documents
    }
    texts["--help"] = (help_texts(), 0)
    texts["errors"] = (error_messages(CODE), 0)
    folders = {path.partition("/")[0] for path in only if path.endswith(".py")}
    selected = {*only, *({"--help"} if "cli" in folders else ()), *({"errors"} if folders & {*CODE} else ())}
    return {
        name: ([sentence for paragraph in parts for sentence in sentences(paragraph)], share)
        for name, (parts, share) in texts.items()
        if not only or name in selected
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true", help="list the long sentences")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a bound is exceeded")
    parser.add_argument(
        "only", nargs="*", help="changed files, or names of sources: README.md, errors, --help after --"
    )
    options = parser.parse_args()
    exceeded = False
    for name, (parts, share) in sources(options.only).items():
        lengths = [length(sentence) for sentence in parts]
        long = [sentence for sentence in parts if length(sentence) > LONG]
        mean = sum(lengths) / max(len(lengths), 1)
        over = mean > MEAN or len(long) > share * len(lengths)
        exceeded |= over
        mark = "!" if over else " "
        if over or not options.check:
            print(f"{mark} {name:44} {len(lengths):5} sentences  mean {mean:5.1f}  over {LONG}: {len(long)}")
        if options.long:
            print(*(f"    {length(sentence)}: {sentence}" for sentence in long), sep="\n")
    return 1 if options.check and exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
