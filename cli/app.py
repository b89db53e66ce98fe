"""Defines the command line: the shared options and the commands."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from cli import (
    bench,
    bench_compare,
    doctor,
    events,
    fleet,
    groups,
    plan,
    policy,
    policy_commands,
    proxy_command,
    show,
    simulate,
    switch,
    terminate,
    ui,
    why,
)
from cli.context import Options
from cli.errors import CliError
from troop.version import VERSION


class _Commands(TyperGroup):
    """The commands; turns a :class:`cli.errors.CliError` into one line on stderr and its exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except CliError as error:
            show.note(f"troop: {error}", style="red")
            raise typer.Exit(int(error.code)) from None


app = typer.Typer(
    cls=_Commands,
    name="troop",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # they would print local variables, credentials among them
    help="Chaos Monkey and benchmark fleets for AWS: show what Troop does, change what it may do, and stop it.",
    epilog="Exit codes: 1 failed, 2 usage, 3 no credentials, 4 expired credentials, 5 no such deployment, 6 wrong "
    "region, 7 no such unit, run or fleet, 8 forbidden, 9 unreachable, 10 refused, 11 changed meanwhile, 12 the "
    "API failed, 13 not confirmed.",
)


def _version(flag: bool) -> None:
    if flag:
        show.say(f"troop {VERSION}")
        raise typer.Exit


@app.callback()
def options(
    ctx: typer.Context,
    deployment: Annotated[
        str, typer.Option("--deployment", "-d", envvar="TROOP_DEPLOYMENT", help="Name of the deployment (its stack).")
    ] = "Troop",
    region: Annotated[str | None, typer.Option(help="AWS region. Default: from the environment or profile.")] = None,
    profile: Annotated[str | None, typer.Option(help="AWS profile. Default: AWS_PROFILE.")] = None,
    version: Annotated[  # noqa: ARG001 its callback acts on it
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Store the options that all commands share."""
    ctx.obj = Options(deployment, region, profile)


app.command("events")(events.events)
app.command("why")(why.why)
app.command("groups")(groups.groups)
app.command("group")(groups.group)
app.command("opt-out")(policy.opt_out)
app.command("opt-in")(policy.opt_in)
app.command("set")(policy.set_values)
app.command("leash")(switch.leash)
app.command("unleash")(switch.unleash)
app.command("halt")(switch.halt)
app.command("resume")(switch.resume)
app.add_typer(switch.reaper, name="reaper")
app.command("terminate")(terminate.terminate)
app.command("doctor")(doctor.doctor)
app.add_typer(policy_commands.app, name="policy")
app.command("plan")(plan.plan)
app.command("simulate")(simulate.simulate)
bench.app.command("compare")(bench_compare.compare)
app.add_typer(bench.app, name="bench")
app.add_typer(fleet.app, name="fleet")
app.command("proxy")(proxy_command.proxy)
app.command("ui")(ui.ui)


def main() -> None:
    """Runs the command line; entry point of the console script."""
    app(prog_name="troop")
