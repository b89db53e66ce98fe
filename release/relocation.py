"""Moves code below one package: rewrites absolute imports, and texts such as ``module:attribute``.

The folders of a checkout are packages with common names, such as ``cli`` and ``infra``. In somebody else's environment
they would collide with that person's own. So the wheel has them below :data:`PACKAGE`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

PACKAGE = "troop_aws"
BELOW = ("agent", "cli", "infra", "troop")
"""Packages that are below :data:`PACKAGE` in the wheel."""
ABSENT = ("handlers", "lifecycle", "local", "perf", "release", "tests")
"""Packages that code in the wheel must not import."""

_ATTRIBUTE = re.compile(rf"(?:{'|'.join(BELOW)})(?:\.\w+)+:\w+")


class RelocationError(Exception):
    """Code that cannot be moved; the message names the file, the line and what to write instead."""


def relocate(source: str, name: str) -> str:
    """Returns the source with the new names.

    Args:
        name: of the file, for messages.

    Raises:
        RelocationError: it imports a package that the wheel lacks, or binds the old name of a package.
    """
    lines = source.encode().splitlines(keepends=True)
    for node, old in sorted(_moved(ast.parse(source), name), key=lambda entry: _place(entry[0]), reverse=True):
        line, column = _place(node)
        rest = lines[line][column:]
        start = column + rest.index(old.encode())
        lines[line] = lines[line][:start] + f"{PACKAGE}.".encode() + lines[line][start:]
    return b"".join(lines).decode()


def _place(node: ast.expr | ast.stmt | ast.alias) -> tuple[int, int]:
    """Returns the line, from 0, and the byte in it."""
    return node.lineno - 1, node.col_offset


def _moved(tree: ast.Module, name: str) -> Iterator[tuple[ast.expr | ast.stmt | ast.alias, str]]:
    """Yields the places of names to prefix, each with the name."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), level=0) if _is_moved(module, name, node.lineno):
                yield node, module
            case ast.Import(names=aliases):
                for alias in aliases:
                    if _is_moved(alias.name, name, node.lineno):
                        if not alias.asname:
                            raise RelocationError(f"{name}:{node.lineno}: write `from ... import` for {alias.name}")
                        yield alias, alias.name
            case ast.Constant(value=str(text)) if _ATTRIBUTE.fullmatch(text):
                yield node, text


def _is_moved(module: str, name: str, line: int) -> bool:
    first = module.partition(".")[0]
    if first in ABSENT:
        raise RelocationError(f"{name}:{line}: imports {module}, which the wheel does not contain")
    return first in BELOW
