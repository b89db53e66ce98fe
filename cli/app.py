"""Defines the command line: the shared options and the commands."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

import typer

from cli.shared import context, show
from cli.shared.completing import complete_values
from cli.shared.context import Options
from cli.shared.errors import CliError, Exit
from cli.shared.examples import epilog
from cli.shared.lazy import LazyCommand, LazyGroup, convert_lazily
from troop.shared.version import VERSION

_SUGGEST = "cli.client.suggestions:suggest"


class Commands(LazyGroup):
    """The commands; turns a :class:`cli.shared.errors.CliError` into one line on stderr and its exit code."""

    lazy: ClassVar = {
        "status": (
            "cli.commands.status:status",
            "Show the state of the deployment: the switch, ticks, today's hits, units, and open runs and fleets.",
        ),
        "events": (
            "cli.commands.events:events",
            "Show terminations and faults, newest first, or the course of one.",
        ),
        "why": (
            "cli.commands.why:why",
            "Explain in one sentence why a unit was skipped, or the outcome of its hit.",
        ),
        "changes": (
            "cli.commands.changes:changes",
            "Show who changed policies and the switch, when, and from what to what, newest first.",
        ),
        "report": (
            "cli.commands.report:report",
            "Write a report of a period, by default the last quarter: terminations, verdicts and recoveries, by owner.",
        ),
        "risks": (
            "cli.commands.risks:risks",
            "Show what could make a recovery fail, and leftovers that cost money, the worst first. Changes nothing.",
        ),
        "exempt": ("cli.commands.risks:exempt", "Accept a risk until a day, for a reason, or end that."),
        "groups": (
            "cli.commands.groups:groups",
            "List all Auto Scaling groups with their policy, and why those that do not take part are skipped.",
        ),
        "group": (
            "cli.commands.groups:group",
            "Show one unit: its policy with the source of each value, its last decision and its last events.",
        ),
        "opt-out": ("cli.commands.unit_policy:opt_out", "Opt a unit out of chaos, at once."),
        "opt-in": (
            "cli.commands.unit_policy:opt_in",
            "Let a unit take part, and return it to chaos if its last hit has taken it out.",
        ),
        "set": ("cli.commands.unit_policy:set_values", "Set or remove values of a unit's policy."),
        "leash": ("cli.commands.switch:leash", "Make chaos decide and record, but hit nothing."),
        "unleash": ("cli.commands.switch:unleash", "Let chaos hit instances. Asks first."),
        "halt": ("cli.commands.switch:halt", "Stop all chaos at once, even decisions."),
        "resume": ("cli.commands.switch:resume", "End a halt. Asks first."),
        "terminate": (
            "cli.commands.terminate:terminate",
            "Terminate one instance of a group now, or inject a fault, regardless of roll and calendar. Asks first.",
        ),
        "doctor": (
            "cli.commands.doctor:doctor",
            "Check the health of the deployment. Exit with 0 if all checks pass, with 1 if one fails.",
        ),
        "prove": (
            "cli.commands.prove:prove",
            "Answer on AWS what no local test can. Shows each step with its price, and asks first.",
        ),
        "thresholds": (
            "cli.commands.thresholds:thresholds",
            "Propose a threshold from measured history, and show the alarms that it would have raised. Changes "
            "nothing.",
        ),
        "plan": (
            "cli.commands.plan:plan",
            "Show every decision of a day in advance, by the code that decides in Lambda. Changes nothing.",
        ),
        "simulate": (
            "cli.commands.simulate:simulate",
            "Simulate terminations over months or years, by the code that decides in Lambda. Needs no AWS.",
        ),
        "proxy": (
            "cli.commands.proxy:proxy",
            "Serve the API on 127.0.0.1, signed with your credentials, to your programs until Ctrl-C.",
        ),
        "ui": (
            "cli.commands.ui:ui",
            "Show units, events, the calendar and benchmarks in your browser, only for you, until Ctrl-C.",
        ),
        "reaper": (
            "cli.commands.switch:reaper",
            "The reaper of benchmarks, which removes what remains after runs.",
        ),
        "schedules": (
            "cli.commands.switch:schedules",
            "All schedules of benchmarks, stopped or not by one switch.",
        ),
        "policy": (
            "cli.commands.policy:app",
            "Policies of many units as one YAML file; differences between stages.",
        ),
        "bench": ("cli.commands.bench:app", "Run benchmarks on temporary fleets, and show their results."),
        "fleet": ("cli.commands.fleet:app", "Standing fleets: nodes that stay until they expire."),
    }

    def complete(self, command: Any, words: Sequence[str]) -> None:
        """Adds the shared options to a command and to its own commands, and mentions them in the help."""
        command.params.extend(context.shared_params())
        convert_lazily(command.get_params(typer.Context(command)))
        command.epilog = epilog(" ".join(words))
        command.short_help = (command.help or "").partition("\n\n")[0]
        complete_values(command, words, _SUGGEST)
        for name, nested in getattr(command, "commands", {}).items():
            if not isinstance(nested, LazyCommand):
                self.complete(nested, [*words, name])

    def get_params(self, ctx: Any) -> Any:
        """Returns the parameters of `troop` itself, whose values are completed like those of the commands."""
        params = super().get_params(ctx)
        convert_lazily(params)
        complete_values(self, [], _SUGGEST)
        return params

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except CliError as error:
            show.note(f"troop: {error}", style="red")
            raise typer.Exit(int(error.code)) from None


app = typer.Typer(
    cls=Commands,
    name="troop",
    no_args_is_help=True,
    rich_markup_mode=None,  # boxes would take three times as long, and leave less room for words
    pretty_exceptions_enable=False,  # they would print local variables, credentials among them
    help="Chaos Monkey and benchmark fleets for AWS: show what Troop does, change what it may do, and stop it.",
    epilog=f"{epilog('')}\n\nExit codes: {', '.join(f'{code:d} {code.meaning}' for code in Exit)}.",
)


def _version(flag: bool) -> None:
    if flag:
        typer.echo(f"troop {VERSION}")
        raise typer.Exit


@app.callback()
def options(
    ctx: typer.Context,
    deployment: context.Deployment = "Troop",
    region: context.Region = None,
    profile: context.Profile = None,
    everywhere: context.All = False,
    deployments: context.Deployments = None,
    version: Annotated[  # noqa: ARG001 its callback acts on it
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Store the options that all commands share."""
    ctx.obj = Options(deployment, region, profile, everywhere, deployments, context.typed_one(ctx))


def main() -> None:
    """Runs the command line; entry point of the console script."""
    gc.set_threshold(100_000)  # looking for garbage among what imports make takes a tenth of a start, and finds none
    app(prog_name="troop")
