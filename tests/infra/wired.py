"""Which environment variables a function asks for, read from the source of its handler and of what wires it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

from infra import FUNCTIONS
from troop.shared.variables import Variable

WIRING = re.compile(r"troop\.\w+\.wiring")
OWN_FILES = frozenset({Variable.DEPLOYMENT_FILE, Variable.AGENT_FILE})
"""Asked for, and not given: what a function finds there without them is bundled with it."""

Name = tuple[str, str]
"""A module of a flat's wiring, and something at its top."""


def variables_of(handler: str) -> frozenset[Variable]:
    """All variables that a function may ask for, and that the stack has to give it.

    Args:
        handler: its module's name; the API's are all modules of the layer ``api`` as well.
    """
    sources = [FUNCTIONS / "handlers" / f"{handler}.py"]
    sources += (FUNCTIONS / "troop").glob("*/api/*.py") if handler == "api" else []
    variables: set[Variable] = set()
    pending: set[Name] = set()
    for source in sources:
        tree = ast.parse(source.read_text())
        variables |= _variables(tree)
        pending |= set(_used(tree, _imported(tree), None))
    seen: set[Name] = set()
    while pending:
        module, name = one = pending.pop()
        seen.add(one)
        tree = _module(module)
        for node in _defined(tree, name):
            variables |= _variables(node)
            pending |= set(_used(node, _imported(tree), module)) - seen
    return frozenset(variables) - OWN_FILES


@cache
def _module(name: str) -> ast.Module:
    return ast.parse(FUNCTIONS.joinpath(*name.split(".")).with_suffix(".py").read_text())


def _imported(tree: ast.Module) -> dict[str, Name]:
    """What is imported from the wiring, by its name here; of a whole module the second part is empty."""
    imports: dict[str, Name] = {}
    for node in ast.walk(tree):
        source = str(node.module) if isinstance(node, ast.ImportFrom) else ""
        if isinstance(node, ast.ImportFrom) and WIRING.fullmatch(source):
            imports |= {alias.asname or alias.name: (f"{source}.{alias.name}", "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and WIRING.match(source):
            imports |= {alias.asname or alias.name: (source, alias.name) for alias in node.names}
    return imports


def _used(tree: ast.AST, imported: dict[str, Name], module: str | None) -> Iterator[Name]:
    """Names of the wiring that stand in it; ``module`` is the one of the wiring that it is of itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in imported:
            yield imported[node.value.id][0], node.attr
        elif isinstance(node, ast.Name):
            if imported.get(node.id, ("", ""))[1]:
                yield imported[node.id]
            elif module is not None:
                yield module, node.id


def _defined(tree: ast.Module, name: str) -> Iterator[ast.AST]:
    """The function of that name, or the assignment; nothing for what is not defined here."""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        is_function = isinstance(node, ast.FunctionDef) and node.name == name
        if is_function or any(isinstance(target, ast.Name) and target.id == name for target in targets):
            yield node


def _variables(tree: ast.AST) -> set[Variable]:
    return {
        Variable[node.attr]
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Variable"
    }
