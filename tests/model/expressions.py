"""DynamoDB's expressions, as far as Troop uses them; compiled once each. Values are in DynamoDB's own types."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import cache
from typing import Any

Item = Mapping[str, Any]
Names = Mapping[str, str]
Values = Mapping[str, Any]
Condition = Callable[[Item, Names, Values], bool]
Operand = Callable[[Item, Names, Values], Any]

_TOKEN = re.compile(r"\s*([=<>(),]|[#:]?\w+(?:\.#?\w+)*)")
_CLAUSE = re.compile(r"\b(SET|ADD|REMOVE|DELETE)\b")


class BadExpression(Exception):
    """What DynamoDB answers with ValidationException."""


def tokens(text: str) -> list[str]:
    parts, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if not match:
            raise BadExpression(f"{text!r} at {at}")
        parts.append(match[1])
        at = match.end()
    return parts


def check_used(request: Mapping[str, Any]) -> None:
    """DynamoDB refuses names and values that are not defined, and those that are not used."""
    text = " ".join(str(value) for key, value in request.items() if key.endswith("Expression"))
    names, values = frozenset(request.get("ExpressionAttributeNames", ())), frozenset(
        request.get("ExpressionAttributeValues", ())
    )  # fmt: skip
    if _used(text) != names | values:
        raise BadExpression(f"{text}: given {sorted(names | values)}")


@cache
def _used(text: str) -> frozenset[str]:
    return frozenset(part for token in tokens(text) for part in token.split(".") if part[0] in "#:")


@cache
def condition(text: str) -> Condition:
    """Compiles a condition: comparisons, BETWEEN, NOT, AND, OR, parentheses, and four functions."""
    left = tokens(text)
    left.reverse()
    result = _or(left)
    if left:
        raise BadExpression(text)
    return result


def _or(left: list[str]) -> Condition:
    parts = [_and(left)]
    while left and left[-1] == "OR":
        left.pop()
        parts.append(_and(left))
    return parts[0] if len(parts) == 1 else lambda i, n, v: any(p(i, n, v) for p in parts)


def _and(left: list[str]) -> Condition:
    parts = [_single(left)]
    while left and left[-1] == "AND":
        left.pop()
        parts.append(_single(left))
    return parts[0] if len(parts) == 1 else lambda i, n, v: all(p(i, n, v) for p in parts)


def _single(left: list[str]) -> Condition:
    token = left.pop()
    if token == "(":
        inner = _or(left)
        _expect(left, ")")
        return inner
    if token in ("attribute_exists", "attribute_not_exists"):
        _expect(left, "(")
        operand = _operand(left.pop())
        _expect(left, ")")
        return lambda i, n, v: (operand(i, n, v) is None) == (token == "attribute_not_exists")
    if token == "NOT":
        negated = _single(left)
        return lambda i, n, v: not negated(i, n, v)
    if token in ("contains", "attribute_type"):
        _expect(left, "(")
        operand = _operand(left.pop())
        _expect(left, ",")
        other = _operand(left.pop())
        _expect(left, ")")
        if token == "attribute_type":
            return lambda i, n, v: other(i, n, v)["S"] in (operand(i, n, v) or {})
        return lambda i, n, v: other(i, n, v)["S"] in (operand(i, n, v) or {"SS": []})["SS"]
    first, operator, second = _operand(token), left.pop(), _operand(left.pop())
    if operator == "=":
        return lambda i, n, v: _equal(first(i, n, v), second(i, n, v))
    if operator == "<":
        return lambda i, n, v: _less(first(i, n, v), second(i, n, v))
    if operator == "BETWEEN":
        _expect(left, "AND")
        third = _operand(left.pop())
        return lambda i, n, v: not (
            _less(first(i, n, v), second(i, n, v)) or _less(third(i, n, v), first(i, n, v))
        )  # fmt: skip
    raise BadExpression(operator)


def _expect(left: list[str], token: str) -> None:
    if not left or left.pop() != token:
        raise BadExpression(f"{token} expected")


def _operand(token: str) -> Operand:
    if token[0] == ":":
        return lambda i, n, v: v[token]
    if token[0] == "#" and "." not in token:
        return lambda i, n, v: i.get(n[token])
    name, *path = token.split(".")

    def inside(item: Item, names: Names, values: Values) -> Any:
        inner = item.get(names.get(name, name))
        for part in path:
            inner = inner["M"].get(names.get(part, part)) if inner and "M" in inner else None
        return inner

    return inside


def _equal(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return False
    if "N" in a and "N" in b:
        return Decimal(a["N"]) == Decimal(b["N"])
    return bool(a == b)


def _less(a: Any, b: Any) -> bool:
    if a is None or b is None or a.keys() != b.keys():
        return False
    ((kind, x),), ((_, y),) = a.items(), b.items()
    return Decimal(x) < Decimal(y) if kind == "N" else bool(x < y)


@cache
def update(text: str) -> Callable[[Item, Names, Values], dict[str, Any]]:
    """Compiles an update: SET with ``if_not_exists``, ADD of numbers and sets, DELETE from sets, REMOVE."""
    steps = list(_steps(text))

    def apply(item: Item, names: Names, values: Values) -> dict[str, Any]:
        new = dict(item)
        for step in steps:
            step(item, new, names, values)
        return new

    return apply


Step = Callable[[Item, dict[str, Any], Names, Values], None]


def _steps(text: str) -> Iterator[Step]:
    parts = _CLAUSE.split(text)
    if parts[0].strip():
        raise BadExpression(text)
    for clause, body in zip(parts[1::2], parts[2::2], strict=True):
        for action in re.split(r",(?![^(]*\))", body):
            yield {"SET": _set, "ADD": _add, "REMOVE": _remove, "DELETE": _delete}[clause](tokens(action))


def _name(token: str) -> Callable[[Names], str]:
    return (lambda n: n[token]) if token[0] == "#" else (lambda n: token)


def _place(new: dict[str, Any], path: list[str], names: Names) -> tuple[dict[str, Any], str]:
    """Returns the map with the last part of a path, and the name of this part; every map above is a copy."""
    for part in path[:-1]:
        name = names.get(part, part)
        if "M" not in new.get(name, {}):
            raise BadExpression(f"no map at {name}")
        new[name] = {"M": dict(new[name]["M"])}
        new = new[name]["M"]
    return new, names.get(path[-1], path[-1])


def _set(action: list[str]) -> Step:
    name, path = _name(action[0]), action[0].split(".")
    if action[1] != "=":
        raise BadExpression(str(action))
    if action[2] == "if_not_exists":
        present, value = _operand(action[4]), _operand(action[6])

        def keep(item: Item, new: dict[str, Any], names: Names, values: Values) -> None:
            old = present(item, names, values)
            new[name(names)] = value(item, names, values) if old is None else old

        return keep
    value = _operand(action[2])
    if len(action) > 3:
        raise BadExpression(str(action))

    def assign(item: Item, new: dict[str, Any], names: Names, values: Values) -> None:
        new[name(names)] = value(item, names, values)

    def assign_inside(item: Item, new: dict[str, Any], names: Names, values: Values) -> None:
        place, last = _place(new, path, names)
        place[last] = value(item, names, values)

    return assign if len(path) == 1 else assign_inside


def _add(action: list[str]) -> Step:
    name, value = _name(action[0]), _operand(action[1])

    def add(item: Item, new: dict[str, Any], names: Names, values: Values) -> None:
        addend = value(item, names, values)
        if "SS" in addend:
            old = item.get(name(names), {"SS": []})
            new[name(names)] = {"SS": sorted({*old["SS"], *addend["SS"]})}
            return
        old = item.get(name(names), {"N": "0"})
        new[name(names)] = {"N": str(Decimal(old["N"]) + Decimal(addend["N"]))}

    return add


def _remove(action: list[str]) -> Step:
    path = action[0].split(".")

    def remove(item: Item, new: dict[str, Any], names: Names, values: Values) -> None:
        place, last = _place(new, path, names)
        place.pop(last, None)

    return remove


def _delete(action: list[str]) -> Step:
    name, elements = _name(action[0]), _operand(action[1])

    def delete(old: Item, new: dict[str, Any], names: Names, values: Values) -> None:
        rest = {*old.get(name(names), {"SS": []})["SS"]} - {*elements(old, names, values)["SS"]}
        new.pop(name(names), None)  # a set is never empty: the attribute goes with its last element
        if rest:
            new[name(names)] = {"SS": sorted(rest)}

    return delete
