"""Lists commands by name and help, and imports each only when it runs or completes its own arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

from cli.shared.watching import WATCH, with_seconds


class Command(TyperCommand):
    """A command, whose option ``--watch`` may stand without its value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        watched = any(WATCH in param.opts for param in self.params)
        return super().parse_args(ctx, with_seconds(args) if watched else args)


class Conversion:
    """Converts the value of a parameter as typer does, but leaves what is text already, or is not given.

    For these too, typer would import pydantic, which takes as long as a request.
    """

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Returns the value that the command gets; typer calls this with what was typed, or the default."""
        kind = param.type_descriptor
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if kind.parameter_info.parser is None:
            if type(value) is kind.annotation and kind.annotation in (str, int, float):
                return value
            if kind.annotation == list[str]:
                return list(value)
        param._runtime_param = None
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def convert_lazily(params: Iterable[Any]) -> None:
    """Lets a :class:`Conversion` convert the values of parameters."""
    for param in params:
        param._runtime_param = Conversion()


class LazyCommand(TyperCommand):
    """Stands for a command until it is loaded.

    Args:
        source: where the command's function or application is, as ``module:attribute``.
        help: the first paragraph of the command's help.
    """

    def __init__(self, name: str, source: str, help: str) -> None:
        super().__init__(name, help=help, short_help=help)  # lists of commands cut off a help that is not short
        self.source = source

    def load(self) -> Any:
        """Imports the command."""
        module, _, attribute = self.source.partition(":")
        command = getattr(import_module(module), attribute)
        parent = typer.Typer(rich_markup_mode=None)
        if isinstance(command, typer.Typer):
            parent.add_typer(command, name=self.name)
        else:
            parent.command(self.name, cls=Command)(command)
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
        if isinstance(command, LazyCommand):
            command = command.load()
            outermost = ctx.find_root().command
            if isinstance(outermost, LazyGroup):
                outermost.complete(command, [*_words(ctx), str(name)])
        return name, command, rest

    def complete(self, command: Any, words: Sequence[str]) -> None:
        """Adds what all commands share to a command and its own commands; called on the outermost group.

        Args:
            words: what a person types to get the command, without ``troop``.
        """


def _words(ctx: Any) -> list[str]:
    """Returns the names of the groups between the outermost one and the context."""
    return [] if ctx.parent is None else [*_words(ctx.parent), str(ctx.info_name)]
