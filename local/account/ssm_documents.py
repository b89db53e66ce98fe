"""Reads documents of Systems Manager that run scripts, and fills their parameters in. Pure.

Covers what Run Command needs of schema 2.2 with ``aws:runShellScript``. Refuses all else, because a document that local
AWS runs in another way than AWS would prove nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_SCHEMA, _ACTION = "2.2", "aws:runShellScript"
_SECONDS = "3600"
"""The timeout of a step that names none."""
_REFERENCE = re.compile(r"\{\{\s*([A-Za-z0-9_]+)\s*\}\}")
_KEYS = {
    "document": {"schemaVersion", "description", "parameters", "mainSteps"},
    "parameter": {"type", "description", "default", "allowedValues", "allowedPattern"},
    "step": {"action", "name", "inputs", "onFailure", "precondition"},
    "inputs": {"runCommand", "timeoutSeconds"},
}
_LINUX = {"StringEquals": ["platformType", "Linux"]}


class DocumentError(Exception):
    """AWS refuses a document or its parameters. `code`: of the API."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Parameter:
    """A parameter of type String. `default`: None if a caller must give it."""

    default: str | None
    allowed: tuple[str, ...]
    pattern: str


@dataclass(frozen=True)
class Step:
    """A step. `timeout`: seconds, maybe a reference. `stops`: whether its failure ends the document."""

    name: str
    script: str
    timeout: str
    stops: bool


@dataclass(frozen=True)
class Document:
    """A document. `needs_network`: whether it may run only where the instance has a network of its own."""

    name: str
    parameters: Mapping[str, Parameter]
    steps: tuple[Step, ...]
    needs_network: bool = False

    def fill(self, values: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
        """Returns the steps with the values of parameters: [{"name", "script", "timeout", "stops"}].

        Raises DocumentError for values that the document does not allow.
        """
        if unknown := values.keys() - self.parameters.keys():
            raise DocumentError("InvalidParameters", f"Parameters {sorted(unknown)} are not in document {self.name}.")
        texts = {name: _value(name, one, values.get(name)) for name, one in self.parameters.items()}

        def filled(text: str) -> str:
            return _REFERENCE.sub(lambda reference: texts.get(reference[1], reference[0]), text)

        return [
            {"name": one.name, "script": filled(one.script), "timeout": float(filled(one.timeout)), "stops": one.stops}
            for one in self.steps
        ]


def _value(name: str, parameter: Parameter, values: Sequence[str] | None) -> str:
    if values is None:
        if parameter.default is None:
            raise DocumentError("InvalidParameters", f"Parameter {name} has no value.")
        return parameter.default
    if len(values) != 1 or not isinstance(values[0], str):
        raise DocumentError("InvalidParameters", f"Parameter {name} is a String: it needs exactly one value.")
    value = values[0]
    if (parameter.allowed and value not in parameter.allowed) or (
        parameter.pattern and not re.fullmatch(parameter.pattern, value)
    ):
        raise DocumentError("InvalidParameters", f"Parameter {name} cannot have the value {value!r}.")
    return value


def parse(name: str, content: str | Mapping[str, Any], needs_network: bool = False) -> Document:
    """Reads the content of a document, as JSON or what JSON stands for. Raises DocumentError."""
    if isinstance(content, str):
        try:
            content = json.loads(content)
        except ValueError as error:
            raise DocumentError("InvalidDocumentContent", f"The content is no JSON: {error}") from None
    if not isinstance(content, Mapping) or str(content.get("schemaVersion")) != _SCHEMA:
        raise DocumentError("InvalidDocumentSchemaVersion", f"Local AWS runs documents of schema {_SCHEMA} only.")
    _check("document", content)
    steps = tuple(map(_step, content.get("mainSteps") or ()))
    if not steps or len({one.name for one in steps}) < len(steps):
        raise DocumentError("InvalidDocumentContent", "mainSteps needs steps with names of their own.")
    parameters = {key: _parameter(key, entry) for key, entry in (content.get("parameters") or {}).items()}
    texts = (text for one in steps for text in (one.script, one.timeout))
    if unknown := {name for text in texts for name in _REFERENCE.findall(text)} - parameters.keys():
        raise DocumentError("InvalidDocumentContent", f"The parameters {sorted(unknown)} are not declared.")
    return Document(name, parameters, steps, needs_network)


def _check(place: str, entry: Any) -> None:
    if not isinstance(entry, Mapping):
        raise DocumentError("InvalidDocumentContent", f"{place} must be an object.")
    if unknown := entry.keys() - _KEYS[place]:
        raise DocumentError("InvalidDocumentContent", f"Local AWS knows no {sorted(unknown)} in {place}.")


def _parameter(name: str, entry: Any) -> Parameter:
    _check("parameter", entry)
    default, pattern = entry.get("default"), str(entry.get("allowedPattern", ""))
    if entry.get("type") != "String" or not re.fullmatch("[A-Za-z0-9_]+", name):
        raise DocumentError("InvalidDocumentContent", f"Parameter {name}: local AWS has those of type String only.")
    try:
        re.compile(pattern)
    except re.error as error:
        raise DocumentError("InvalidDocumentContent", f"Parameter {name}: {error}") from None
    return Parameter(None if default is None else str(default), tuple(entry.get("allowedValues") or ()), pattern)


def _step(entry: Any) -> Step:
    _check("step", entry)
    _check("inputs", entry.get("inputs"))
    lines, name = entry["inputs"].get("runCommand"), str(entry.get("name", ""))
    if entry.get("action") != _ACTION or not isinstance(lines, list) or not re.fullmatch("[A-Za-z0-9_]{3,128}", name):
        raise DocumentError("InvalidDocumentContent", f"A step needs a name, the action {_ACTION} and runCommand.")
    if entry.get("onFailure", "exit") != "exit" or entry.get("precondition", _LINUX) != _LINUX:
        raise DocumentError("InvalidDocumentContent", f"Step {name}: local AWS lacks its onFailure or precondition.")
    seconds = str(entry["inputs"].get("timeoutSeconds", _SECONDS))
    return Step(name, "\n".join(map(str, lines)) + "\n", seconds, entry.get("onFailure") == "exit")
