"""Reads the options that all commands share, and asks for confirmations."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any

import typer

from cli.shared.errors import CliError, Exit

_LATER = "cli.options-after-the-command"


@dataclass(frozen=True)
class Options:
    """The options that all commands share; None where the environment decides."""

    deployment: str = "Troop"
    region: str | None = None
    profile: str | None = None


Deployment = Annotated[
    str, typer.Option("--deployment", "-d", envvar="TROOP_DEPLOYMENT", help="Name of the deployment (its stack).")
]
Region = Annotated[str | None, typer.Option(help="AWS region. Default: from the environment or profile.")]
Profile = Annotated[str | None, typer.Option(help="AWS profile. Default: AWS_PROFILE.")]
ANYWHERE = "Global options, anywhere: -d/--deployment, --region, --profile."
"""The line about these options in the help of every command."""


def shared_params() -> list[Any]:
    """Returns the shared options for a command's own parameters, so that they may follow its name.

    The parser of each command reads them, and so respects ``--`` and the values of its other options.
    """
    return list(_shared_params())


@cache
def _shared_params() -> tuple[Any, ...]:
    def command(
        deployment: Annotated[str | None, typer.Option("--deployment", "-d", hidden=True)] = None,
        region: Annotated[str | None, typer.Option(hidden=True)] = None,
        profile: Annotated[str | None, typer.Option(hidden=True)] = None,
    ) -> None: ...

    application = typer.Typer(add_completion=False)
    application.command()(command)
    params = typer.main.get_command(application).params
    for param in params:
        param.expose_value, param.callback = False, _overrule
    return tuple(params)


def _overrule(ctx: Any, param: Any, value: str | None) -> str | None:
    """Lets a value after the command's name replace one before it."""
    if value is not None:
        ctx.meta.setdefault(_LATER, {})[param.name] = value
        if ctx.obj is not None:
            ctx.obj = replace(ctx.obj, **{param.name: value})
    return value


def typed_options(ctx: Any) -> Options:
    """Returns the shared options of a command line that is being completed, when no command has run."""
    outermost = ctx.find_root().params
    before = {name: outermost[name] for name in ("deployment", "region", "profile") if outermost.get(name)}
    return Options(**{**before, **ctx.meta.get(_LATER, {})})


def to_type(ctx: typer.Context, *words: str) -> str:
    """Returns a command line for the same deployment: ``troop --region eu-west-1 bench stop ID``."""
    deployment = "" if ctx.obj.deployment == "Troop" else f" -d {ctx.obj.deployment}"
    region = f" --region {ctx.obj.region}" if ctx.obj.region else ""
    return f"troop{deployment}{region} {' '.join(words)}"


def interactive() -> bool:
    """Checks whether standard input is a terminal."""
    return sys.stdin.isatty()


def confirm(question: str, yes: bool) -> None:
    """Asks for a confirmation.

    Args:
        question: without the question mark.
        yes: whether ``--yes`` was given.

    Raises:
        CliError: NOT_CONFIRMED; also without a terminal, and after Ctrl-C or Ctrl-D at the question.
    """
    if yes:
        return
    if not interactive():
        raise CliError(Exit.NOT_CONFIRMED, "confirmation required: rerun with --yes")
    try:
        confirmed = typer.confirm(f"{question}?", err=True)
    except typer.Abort:
        sys.stderr.write("\n")
        confirmed = False
    if not confirmed:
        raise CliError(Exit.NOT_CONFIRMED, "nothing was changed")
