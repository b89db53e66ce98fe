"""Reads the options that all commands share, and asks for confirmations."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Annotated, Any

import typer

from cli.shared.errors import CliError, Exit

_LATER = "cli.options-after-the-command"


@dataclass(frozen=True)
class Options:
    """The options that all commands share; None where the environment decides.

    Attributes:
        everywhere: whether to ask all deployments of a file.
        deployments: that file.
        typed: whether somebody typed one of the options that select a single deployment.
    """

    deployment: str = "Troop"
    region: str | None = None
    profile: str | None = None
    everywhere: bool = False
    deployments: str | None = None
    typed: bool = field(default=False, compare=False)


Deployment = Annotated[
    str, typer.Option("--deployment", "-d", envvar="TROOP_DEPLOYMENT", help="Name of the deployment (its stack).")
]
Region = Annotated[str | None, typer.Option(help="AWS region. Default: from the environment or profile.")]
Profile = Annotated[str | None, typer.Option(help="AWS profile. Default: AWS_PROFILE.")]
All = Annotated[bool, typer.Option("--all", help="Ask every deployment of the file of --deployments.")]
Deployments = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="A file that lists deployments. Default: TROOP_DEPLOYMENTS, or deployments.yaml."
    ),
]
ANYWHERE = "Global options, anywhere: -d/--deployment, --region, --profile"
"""The line about these options in the help of every command."""
EVERYWHERE = ("status", "groups", "events", "why", "changes", "report", "doctor", "halt", "resume", "ui")
"""The commands that know ``--all``."""
_ONE = frozenset({"deployment", "region", "profile"})
"""The options that select a single deployment."""


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
        deployments: Annotated[str | None, typer.Option(hidden=True)] = None,
        everywhere: Annotated[bool | None, typer.Option("--all", hidden=True)] = None,
    ) -> None: ...

    application = typer.Typer(add_completion=False)
    application.command()(command)
    params = typer.main.get_command(application).params
    for param in params:
        param.expose_value, param.callback = False, _overrule
    return tuple(params)


def _overrule(ctx: Any, param: Any, value: Any) -> Any:
    """Lets a value after the command's name replace one before it.

    Raises:
        CliError: USAGE, for ``--all`` with a command that does not know it.
    """
    if value is not None:
        ctx.meta.setdefault(_LATER, {})[param.name] = value
        if ctx.obj is not None:
            ctx.obj = replace(ctx.obj, typed=ctx.obj.typed or param.name in _ONE, **{param.name: value})
    words = " ".join(ctx.command_path.split()[1:])
    if param.name == "everywhere" and ctx.obj and ctx.obj.everywhere and words not in EVERYWHERE:
        known = ", ".join(EVERYWHERE)
        raise CliError(Exit.USAGE, f"`troop {words}` has no --all, which is of {known}: choose one deployment with -d")
    return value


def typed_one(ctx: Any) -> bool:
    """Checks whether the options before the command's name, as typed, select a single deployment."""
    return any(ctx.get_parameter_source(name).name == "COMMANDLINE" for name in _ONE)


def typed_options(ctx: Any) -> Options:
    """Returns the shared options of a command line that is being completed, when no command has run."""
    outermost = ctx.find_root().params
    before = {name: outermost[name] for name in _ONE if outermost.get(name)}
    later = {name: value for name, value in ctx.meta.get(_LATER, {}).items() if name in _ONE}
    return Options(**{**before, **later})


def to_type(ctx: typer.Context, *words: str) -> str:
    """Returns a command line for the same deployments: ``troop --region eu-west-1 bench stop ID``."""
    if ctx.obj.everywhere:
        file = f" --deployments {shlex.quote(ctx.obj.deployments)}" if ctx.obj.deployments else ""
        return f"troop {' '.join(words)} --all{file}"
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
