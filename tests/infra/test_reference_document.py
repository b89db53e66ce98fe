"""The lists of commands and routes in docs/reference are those of the code, and leave nothing out."""

from __future__ import annotations

import re
from enum import Enum
from typing import Annotated, Literal

import pytest
import typer
from typer.main import get_command

from cli.shared.errors import Exit
from infra import openapi, reference_doc

COMMAND = reference_doc.COMMAND.read_text(encoding="utf-8")
API = reference_doc.API.read_text(encoding="utf-8")


class Colour(Enum):
    RED = "red"


def test_documents_are_current() -> None:
    assert reference_doc.command_page(COMMAND) == COMMAND, "run: make openapi"
    assert reference_doc.api_page(API) == API, "run: make openapi"


def test_every_route_and_exit_code_has_its_place() -> None:
    routes = {f"{m.upper()} {path}" for path, methods in openapi.document()["paths"].items() for m in methods}
    assert set(re.findall(r"^### ([A-Z]+ /.*)$", API, re.MULTILINE)) == routes
    assert re.findall(r"^\| (\d+) \| .", COMMAND, re.MULTILINE) == [str(int(code)) for code in Exit]


def test_command_shows_arguments_choices_and_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    def paint(
        wall: Annotated[str, typer.Argument(help="The wall.")],
        colour: Annotated[Colour | None, typer.Option(help="The colour.")] = None,
        coats: Annotated[int, typer.Option(help="How many.")] = 2,
        finish: Annotated[Literal["matt", "gloss"] | None, typer.Option(help="The finish.")] = None,
        dry: Annotated[bool, typer.Option("--dry", help="Only look.")] = False,
        picture: Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="The picture.")] = None,
    ) -> None:
        """Paint a wall."""

    app = typer.Typer()
    app.command()(paint)
    monkeypatch.setattr(reference_doc, "commands", lambda: iter([("paint", get_command(app))]))
    page = reference_doc.command_page(COMMAND)
    for row in (
        "](#troop-paint) | Paint a wall. |",
        "| `WALL` | The wall. |",
        "| `--colour COLOUR` | The colour. One of: red. |",
        "| `--coats COATS` | How many. Default: 2. |",
        "| `--finish FINISH` | The finish. One of: matt, gloss. |",
        "| `--dry` | Only look. |",
        "| `--output`, `-o FILE` | The picture. |",
    ):
        assert f"{row}\n" in page, page[page.index("### troop paint") :]
