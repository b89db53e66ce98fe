"""Rejects names that say a tense instead of a thing: ``found``, ``told``, ``KeptRun``, ``made_at``.

``names.py PATH...`` reads the syntax tree of every Python file that git tracks there. It checks each name that the
file defines: modules, classes, functions, parameters, variables, fields and aliases. Names of test functions are
sentences, and are not checked. Prints one line for each name, and exits with 1 if there is any.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

EMPTY = frozenset({"told", "found", "given", "made", "kept", "asked", "wanted", "said", "look", "anew"})

ALLOWED: dict[str, str] = {"connection_made": "asyncio calls a protocol by this name"}
"""Exceptions: each name with its reason. Keep fewer than twenty."""


def words(name: str) -> set[str]:
    """Splits a name into its words, in lower case."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Lists the names that a syntax tree defines, each with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if not name.startswith("test_"):
                    yield node.lineno, name
            case ast.ClassDef(name=name) | ast.ExceptHandler(name=str(name)) | ast.alias(asname=str(name)):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name


def rejected(path: str, source: str) -> list[str]:
    """Lists the names of a file that hold an empty word, as ``path:line: name``."""
    text = f"{path}\n{source}".lower()
    if not any(word in text for word in EMPTY):
        return []  # most files; to parse one takes far longer
    defined = [(1, Path(path).stem), *names(ast.parse(source))]
    return [f"{path}:{line}: {name}" for line, name in defined if words(name) & EMPTY and name not in ALLOWED]


def main() -> int:
    tracked = ["git", "ls-files", "-z", "--", *sys.argv[1:]]
    paths = subprocess.run(tracked, capture_output=True, text=True, check=True).stdout.split("\0")
    problems = [
        problem
        for path in paths
        if path.endswith(".py")
        for problem in rejected(path, Path(path).read_text(encoding="utf-8"))
    ]
    sys.stdout.writelines(f"{problem}: name the thing instead\n" for problem in problems)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
