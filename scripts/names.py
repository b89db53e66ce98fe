"""Rejects names that say a tense instead of a thing, such as ``found`` or ``KeptRun``, and halves of sentences.

``names.py PATH...`` reads the syntax tree of every Python file that git tracks there. It checks each name that the
file defines: modules, classes, functions, parameters, variables, fields and aliases. The name of a test states a
behaviour in at most :data:`LONGEST_TEST` words. Prints one line for each rejected name, and exits with 1 if there is
any.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

EMPTY = frozenset({"told", "found", "given", "made", "kept", "asked", "wanted", "said", "look", "anew"})
"""Words that no name holds."""

DEPENDENT = frozenset({"of", "nor", "what", "that", "it"})
"""Words that no name begins with: what follows them is half of a sentence."""

LONGEST_TEST = 14
"""The most words of a test's name, without ``test``."""

ALLOWED: dict[str, str] = {
    "connection_made": "asyncio calls a protocol by this name",
    "what_if": "a what-if is a noun",
    "test_what_if": "a what-if is a noun",
    "test_what_if_files": "a what-if is a noun",
    "of_script": "scripts of users call it",
    "of_this_phase": "scripts of users call it",
    "run_models.py:of": "a key of the API",
    "cost_models.py:what": "a key of the API",
    "document.py:what": "a key of reports",
    "run_models.py:what": "a key of the API",
    "document.py:of_file": "a key of reports",
    "ranks.py:of": "a key of the roster that nodes read",
    "costs.py:what": "a stored key",
}
"""Exceptions: each name, or ``FILE:NAME``, with its reason. Keep fewer than twenty."""


def words(name: str) -> list[str]:
    """Splits a name into its words, in lower case, without the ``test`` that a test begins with."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name.removeprefix("test_"))]


def names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Lists the names that a syntax tree defines, each with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.ExceptHandler(name=str(name)) | ast.alias(asname=str(name)):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name


def advice(path: str, name: str) -> str:
    """Says what to do about a name, or nothing if it is a good one."""
    parts = words(name)
    if name in ALLOWED or f"{Path(path).name}:{name}" in ALLOWED or not parts:
        return ""
    if EMPTY & set(parts):
        return "name the thing instead"
    if parts[0] in DEPENDENT:
        return f"begin with a noun or a verb instead of {parts[0]}"
    if name.startswith("test_") and name.count("_") > LONGEST_TEST:
        return f"use at most {LONGEST_TEST} words"
    return ""


def rejected(path: str, source: str) -> list[str]:
    """Lists the bad names of a file, as ``path:line: name: advice``."""
    defined = [(1, Path(path).stem), *names(ast.parse(source))]
    return [f"{path}:{line}: {name}: {todo}" for line, name in defined if (todo := advice(path, name))]


def main() -> int:
    tracked = ["git", "ls-files", "-z", "--", *sys.argv[1:]]
    paths = subprocess.run(tracked, capture_output=True, text=True, check=True).stdout.split("\0")
    problems = [
        problem
        for path in paths
        if path.endswith(".py")
        for problem in rejected(path, Path(path).read_text(encoding="utf-8"))
    ]
    sys.stdout.writelines(f"{problem}\n" for problem in problems)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
