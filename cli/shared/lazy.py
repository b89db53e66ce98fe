"""Lists commands by name and help, and imports each only when it runs or completes its own arguments."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup


class LazyCommand(TyperCommand):
    """Stands for a command until it is loaded.

    Args:
        source: where the command's function or application is, as ``module:attribute``.
        help: the first paragraph of the command's help.
    """

    def __init__(self, name: str, source: str, help: str) -> None:
        super().__init__(name, help=help)
        self.source = source

    def load(self) -> Any:
        """Imports the command."""
        module, _, attribute = self.source.partition(":")
        command = getattr(import_module(module), attribute)
        parent = typer.Typer()
        if isinstance(command, typer.Typer):
            parent.add_typer(command, name=self.name)
        else:
            parent.command(self.name)(command)
        return typer.main.get_group(parent).commands[str(self.name)]


class LazyGroup(TyperGroup):
    """A group with commands that are imported when they are needed.

    Attributes:
        lazy: sources and helps of these commands, by name.
    """

    lazy: ClassVar[Mapping[str, tuple[str, str]]] = {}

    def __init__(self, **attrs: Any) -> None:
        super().__init__(**attrs)
        for name, (source, help) in self.lazy.items():
            self.add_command(LazyCommand(name, source, help))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Returns the command that the first argument names, loaded."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, LazyCommand) else command, rest
