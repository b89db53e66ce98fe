"""Generates the lists of commands and routes in docs/reference: ``python -m infra.reference_doc`` writes them.

- docs/reference/command.md: every command from the command line itself, the exit codes, and the questions of
  ``troop prove``.
- docs/reference/api.md: every route from the API's description.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Literal, get_args, get_origin

from typer.main import get_command

from cli.app import app
from cli.prove.questions import QUESTIONS
from cli.shared import listings
from cli.shared.errors import Exit
from cli.shared.examples import EXAMPLES
from cli.shared.lazy import LazyCommand
from infra import ROOT, openapi
from infra.api import STAGE
from infra.generated import filled, table

COMMAND = ROOT / "docs" / "reference" / "command.md"
API = ROOT / "docs" / "reference" / "api.md"

_SHARED = {"--deployment", "--region", "--profile", "--help", "--json"}
"""Options of many commands, which the page describes once."""
_USUAL = {
    "400": "The request is invalid: the message states the problem and what is allowed",
    "403": "The signature is missing or wrong, or IAM does not allow it",
}
"""Answers of nearly every route, which the page describes once."""
_PAGED = {"limit": "Entries of a page", "cursor": "The next page: the `cursor` of the answer before"}


def command_page(document: str) -> str:
    """Returns docs/reference/command.md with current commands, exit codes and questions."""
    final = [(words, command) for words, command in commands() if words and not getattr(command, "commands", None)]
    index = table(
        ["command", "what it does"],
        [(f"[`troop {words}`](#troop-{words.replace(' ', '-')})", _first(command)) for words, command in final],
    )
    codes = table(["exit code", "meaning"], [(str(int(code)), code.meaning) for code in Exit])
    questions = table(
        ["name", "question", "step", "at most"],
        [(f"`{one.name}`", one.text, str(one.kind), f"${one.price}") for one in QUESTIONS],
    )
    sections = "\n".join(_command(words, command) for words, command in final)
    parts = {"index": index, "exit codes": codes, "questions": questions, "commands": sections}
    for name, part in parts.items():
        document = filled(document, name, part)
    return document


def commands() -> Iterator[tuple[str, Any]]:
    """Lists every group and command with the words after ``troop``, in the order of the help."""
    return _below("", get_command(app))


def _below(words: str, command: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(command, LazyCommand):
        command = command.load()
    yield words, command
    for name, child in getattr(command, "commands", {}).items():
        yield from _below(f"{words} {name}".strip(), child)


def _first(command: Any) -> str:
    return " ".join(command.help.split("\n\n")[0].split())


def _command(words: str, command: Any) -> str:
    params = [param for param in command.params if not _is_shared(param) and not getattr(param, "hidden", False)]
    arguments = [param for param in params if param.param_type_name == "argument"]
    usage = " ".join([f"troop {words}", *(_argument(param) for param in arguments)])
    rows = [(f"`{_argument(param)}`", _meaning(param)) for param in arguments]
    rows += [(_option(param), _meaning(param)) for param in params if param not in arguments]
    paragraphs = [" ".join(part.split()) for part in command.help.split("\n\n")]
    example = "\n".join(EXAMPLES.get(words, ()))
    return "\n".join(
        [
            f"### troop {words}\n",
            *(textwrap.fill(_plain(part), 120, break_on_hyphens=False) + "\n" for part in paragraphs),
            *([table([f"`{usage}`", ""], rows)] if rows else [f"It has no options of its own: `{usage}`.\n"]),
            *([f"```sh\n{example}\n```\n"] if example else []),
        ]
    )


def _is_shared(param: Any) -> bool:
    if "--output" in param.opts:
        return bool(param.metavar == listings.FORM)  # another value is a file, which only that command writes
    return not _SHARED.isdisjoint(param.opts)


def _argument(param: Any) -> str:
    name = (param.metavar or param.name.upper().replace("_", "-")).removesuffix("...")
    many = "..." if param.nargs == -1 else ""
    return f"{name}{many}" if param.required else f"[{name}{many}]"


def _option(param: Any) -> str:
    names = [*param.opts, *param.secondary_opts]
    if param.is_flag:
        return ", ".join(f"`{name}`" for name in names)
    value = param.metavar or max(param.opts, key=len).lstrip("-").upper()
    return ", ".join([*(f"`{name}`" for name in names[:-1]), f"`{names[-1]} {value}`"])


def _meaning(param: Any) -> str:
    default = None if callable(param.default) or getattr(param, "is_flag", False) else param.default
    allowed = _choices(param.type_descriptor.annotation)
    more = [f"One of: {', '.join(allowed)}."] if allowed else []
    more += [f"Default: {default}."] if default not in (None, "", ()) else []
    return " ".join([_plain(param.help or ""), *more])


def _choices(annotation: Any) -> list[str]:
    """Lists what an option accepts, if its type names that."""
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return [str(one.value) for one in annotation]
    inner = [value for one in get_args(annotation) for value in _choices(one)]
    return [str(one) for one in get_args(annotation)] if get_origin(annotation) is Literal else inner


def _plain(text: str) -> str:
    """Returns a help text as Markdown: what looks like a tag is none, and spaces are single."""
    return re.sub(r"(?<![`\w])<([\w -]+)>", r"`<\1>`", " ".join(text.split()))


def api_page(document: str) -> str:
    """Returns docs/reference/api.md with current routes."""
    spec = openapi.document()
    operations = [
        (f"{method.upper()} {path}", operation)
        for path, methods in spec["paths"].items()
        for method, operation in methods.items()
    ]
    index = table(
        ["route", "what it does"],
        [(f"[`{route}`](#{_anchor(route)})", operation["summary"]) for route, operation in operations],
    )
    schemas = spec["components"]["schemas"]
    sections = "\n".join(_route(route, operation, schemas) for route, operation in operations)
    return filled(filled(document, "index", index), "routes", sections)


def _anchor(route: str) -> str:
    return re.sub(r"[^\w\- ]", "", route.lower()).replace(" ", "-")


def _route(route: str, operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    method, _, path = route.partition(" ")
    resource = re.sub(r"\{\w+\}", "*", path)
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    schema = " or ".join(f"`{one['$ref'].rpartition('/')[2]}`" for one in body.get("oneOf", [body]) if "$ref" in one)
    answers = {code: one["description"] for code, one in sorted(operation["responses"].items())}
    rows = [(f"`{one['name']}`", _parameter(one, schemas)) for one in operation.get("parameters", [])]
    rows += [("body", f"{schema} of [openapi.json](openapi.json)")] if schema else []
    rows += [(code, text) for code, text in answers.items() if _USUAL.get(code) != text]
    return "\n".join(
        [
            f"### {route}\n",
            f"{operation['summary']}: `.../{STAGE}/{method}{resource}`\n",
            f"{_prose(operation['description'])}\n",
            table(["parameter or answer", ""], rows),
        ]
    )


def _prose(description: str) -> str:
    return description.replace("``", "`")


def _parameter(parameter: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    schema = parameter["schema"]
    allowed = schemas[schema["$ref"].rpartition("/")[2]]["enum"] if "$ref" in schema else schema.get("enum", [])
    parts = [parameter.get("description", "") or _PAGED.get(parameter["name"], "")]
    parts += [f"one of {', '.join(allowed)}"] if allowed else []
    parts += ["required"] if parameter["required"] and parameter["in"] == "query" else []
    parts += [f"at most {schema['maximum']:g}"] if "maximum" in schema else []
    parts += [f"default {schema['default']}"] if "default" in schema else []
    return "; ".join(part for part in parts if part)


if __name__ == "__main__":
    for path, page in ((COMMAND, command_page), (API, api_page)):
        path.write_text(page(path.read_text(encoding="utf-8")), encoding="utf-8")
