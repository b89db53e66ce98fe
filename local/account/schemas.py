"""Reads the schemas of CloudFormation's templates and types, which cfn-lint contains, and compares values with them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .config import REGION

Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Schemas:
    """The schemas in cfn-lint's folder. Each is read once, when it is first needed."""

    folder: Path

    def for_type(self, kind: str) -> Schema | None:
        """Returns the schema that AWS publishes of a type; None for a type that AWS does not have in this region."""
        name = self.part(f"providers/{REGION}").get(kind)
        return self.part(f"resources/{name}") if name else None

    def part(self, place: str) -> Any:
        """Returns a document, such as cfn-lint's schema ``other/template/configuration``."""
        return _read(self.folder / f"{place}.json")


@cache
def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def unknown_names(schema: Any, value: Any, root: Schema | None = None, place: str = "#") -> Iterator[tuple[str, str]]:
    """Yields each name in a value that its schema does not have, after the place of the value around it.

    Args:
        root: the document of the schema, for its references; None if it is the schema itself.
    """
    root = schema if root is None else root
    if not isinstance(schema, Mapping) or root is None:
        return
    if isinstance(value, Mapping) and (branches := _intrinsic_branches(value)) is not None:
        for inner in branches:
            yield from unknown_names(schema, inner, root, place)
        return
    if reference := schema.get("$ref"):
        yield from unknown_names(_referenced(root, reference), value, root, place)
    if isinstance(value, list):
        for number, inner in enumerate(value):
            yield from unknown_names(schema.get("items"), inner, root, f"{place}/{number}")
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            below = _below(schema, str(name))
            if below is False:
                yield place, str(name)
            yield from unknown_names(below, inner, root, f"{place}/{name}")
    for part in schema.get("allOf", ()):
        yield from unknown_names(part, value, root, place)
    for choice in ("anyOf", "oneOf"):
        alternatives = [list(unknown_names(part, value, root, place)) for part in schema.get(choice, ())]
        yield from min(alternatives, key=len, default=[])


def _referenced(root: Schema, reference: str) -> Any:
    schema: Any = root
    for part in reference.removeprefix("#/").split("/"):
        schema = schema.get(part, {})
    return schema


def _intrinsic_branches(value: Mapping[str, Any]) -> list[Any] | None:
    """Returns what a function of templates may become, as far as the template tells; None if it is no function."""
    if len(value) != 1 or not (name := str(next(iter(value)))).startswith(("Fn::", "Ref")):
        return None
    arguments = value[name]
    return list(arguments[1:]) if name == "Fn::If" and isinstance(arguments, list) else []


def _below(schema: Schema, name: str) -> Any:
    """Returns the schema of a name in an object; False if there is none, True if any value fits."""
    properties, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    if name in properties:
        return properties[name]
    if not properties and not patterns:
        return schema.get("additionalProperties") or True
    fitting = (part for pattern, part in patterns.items() if re.search(pattern, name))
    return next(fitting, schema.get("additionalProperties", True))
