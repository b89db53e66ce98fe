"""Finds the places of the product's code that rely on AWS: calls, error codes, names of system tags."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from botocore import xform_name

from infra import ROOT
from local.account.shapes import UNKNOWN
from tests.aws_facts.sources import model, services

FOLDERS = ("functions", "lifecycle", "cli", "infra")


@dataclass(frozen=True)
class Call:
    """A call of an API.

    Attributes:
        where: file and line.
        method: the method of the SDK's client, such as ``describe_instances``.
        parameters: the values of the parameters; :data:`UNKNOWN` within them where the code computes a value.
        is_complete: whether these are all parameters.
        pages: whether it is the call of a paginator.
    """

    where: str
    method: str
    parameters: Mapping[str, Any]
    is_complete: bool
    pages: bool = False


@cache
def modules() -> Mapping[str, ast.Module]:
    """Returns the syntax trees of all modules by their names, such as ``troop.shared.tags``."""
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    return {_name(path): ast.parse(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT))) for path in paths}


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[1:] if parts[0] == "functions" else parts).removesuffix(".__init__")


@cache
def used_services() -> frozenset[str]:
    """Returns the services of which the code makes clients."""
    named = (
        argument.value
        for tree in modules().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _called(node).endswith(("client", "client_of"))
        for argument in node.args
        if isinstance(argument, ast.Constant)
    )
    return services().intersection(map(str, named))


@cache
def operations() -> Mapping[str, tuple[tuple[str, str], ...]]:
    """Returns the operations of the used services by the method of the client: pairs of service and operation."""
    pairs_by_method: dict[str, list[tuple[str, str]]] = {}
    for service in sorted(used_services()):
        for operation in model(service).operation_names:
            pairs_by_method.setdefault(xform_name(operation), []).append((service, operation))
    return {method: tuple(pairs) for method, pairs in pairs_by_method.items()}


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


class _Module:
    """Evaluates constants of a module."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.tree = modules()[name]
        self.assigned: dict[str, ast.expr] = {}
        self.imported: dict[str, tuple[str, str]] = {}
        for node in ast.walk(self.tree):
            match node:
                case ast.Assign(targets=[ast.Name(id=target)], value=value):
                    self.assigned.setdefault(target, value)
                case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                    pairs = zip(targets, values, strict=False)
                    self.assigned |= {one.id: value for one, value in pairs if isinstance(one, ast.Name)}
                case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value):
                    self.assigned.setdefault(target, value)
                case ast.ImportFrom(module=str(module)):
                    self.imported |= {one.asname or one.name: (module, one.name) for one in node.names}

    def value(self, node: ast.expr) -> Any:
        """Returns the value of an expression of constants; UNKNOWN for what is not constant, also within it."""
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                values: list[Any] = []
                for part in parts:
                    inner = self.value(part.value if isinstance(part, ast.Starred) else part)
                    values += inner if isinstance(part, ast.Starred) and isinstance(inner, list) else [inner]
                return values
            case ast.Dict(keys=keys, values=parts):
                pairs = zip(keys, parts, strict=True)
                named = {self.value(key): self.value(part) for key, part in pairs if key is not None}
                return named | ({UNKNOWN: UNKNOWN} if None in keys else {})
            case ast.Call(func=ast.Name(id="frozenset" | "list" | "tuple" | "set" | "sorted"), args=[only]):
                return self.value(only)
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                left, right = self.value(left), self.value(right)
                return left + right if isinstance(left, list) and isinstance(right, list) else UNKNOWN
            case ast.Name(id=name) if name in self.assigned:
                return self.value(self.assigned[name])
            case ast.Name(id=name) if name in self.imported and self.imported[name][0] in modules():
                module, original = self.imported[name]
                return _module(module).value(ast.Name(original))
        return UNKNOWN


@cache
def _module(name: str) -> _Module:
    return _Module(name)


def calls() -> Iterator[Call]:
    """Yields all calls of APIs whose method and parameters the code names."""
    for name, tree in modules().items():
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)) or node.args:
                continue
            method, pages = node.func.attr, False
            match node.func:
                case ast.Attribute(
                    attr="paginate",
                    value=ast.Call(func=ast.Attribute(attr="get_paginator"), args=[ast.Constant(value=str(method))]),
                ):
                    pages = True
            if method not in operations():
                continue
            module = _module(name)
            parameters = {one.arg: module.value(one.value) for one in node.keywords if one.arg}
            is_complete = all(one.arg for one in node.keywords)
            if pages or not parameters or all(key[0].isupper() or "_" not in key for key in parameters):
                yield Call(f"{name}:{node.lineno}", method, parameters, is_complete, pages)


def error_codes() -> Iterator[tuple[str, str]]:
    """Yields the error codes of AWS with which the code compares, each with its module."""
    for name, tree in modules().items():
        module = _module(name)
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare) and _is_code(node.left, module):
                for side in node.comparators:
                    values = module.value(side)
                    for value in values if isinstance(values, list) else [values]:
                        assert value is not UNKNOWN, f"{name}:{node.lineno}: with what is the code compared?"
                        yield name, str(value)
            match node:
                case ast.Attribute(attr=error, value=ast.Attribute(attr="exceptions")):
                    yield name, error


def _is_code(node: ast.expr, module: _Module) -> bool:
    """Checks for the code of an error: ``error.response["Error"]["Code"]``, or a name or function with this value."""
    match node:
        case ast.Subscript(value=ast.Subscript(slice=ast.Constant(value="Error")), slice=ast.Constant(value="Code")):
            return True
        case ast.Call(func=ast.Attribute(attr="get", value=inner), args=[ast.Constant(value="Code"), *_]):
            return isinstance(inner, ast.Subscript)
        case ast.NamedExpr(value=inner):
            return _is_code(inner, module)
        case ast.Attribute(attr="code", value=ast.Name(id="failure")):
            return True
        case ast.Call(func=ast.Name(id="_code" | "error_code")):
            return True
        case ast.Name(id=name) if name in module.assigned:
            return _is_code(module.assigned[name], module)
    return False


def system_tags() -> Iterator[tuple[str, str]]:
    """Yields the names of tags that only AWS sets, each with its module."""
    for name, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                tag = node.value.removeprefix("tag:").rpartition("Tag/")[2]
                if tag.startswith("aws:") and tag.count(":") == 2:
                    yield name, tag
