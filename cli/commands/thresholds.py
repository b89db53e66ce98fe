"""Implements `troop thresholds`: proposes a threshold from measured history, and says which alarms it had raised."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from cli.client.connection import connection
from cli.shared import aws, show, times
from cli.shared.errors import CliError, Exit
from cli.thresholds import answer
from cli.thresholds.answer import Answer
from cli.thresholds.history import DAY
from cli.thresholds.metric import FORM, PLAIN, BadNameError, Metric, Side, check_metric, parse
from cli.thresholds.metric_reader import LONGEST_DAYS, MetricReader
from cli.thresholds.proposal import TooLittleError, propose
from cli.thresholds.weekly import hours_of_week
from troop.bench.definition import names
from troop.shared.formatting import duration

_EXTENDED = re.compile(r"(p|tm|tc|ts|wm)\d{1,2}(\.\d{1,10})?|p100|IQM|(PR|TC|TM|TS|WM)\([\d.%]*:[\d.%]*\)")
LONGEST_WINDOW = 7 * DAY
"""The longest time that an alarm looks back; with periods below an hour a day, which 24 values never exceed."""


def _statistic(text: str | None) -> str | None:
    if text is None or text in PLAIN or _EXTENDED.fullmatch(text):
        return text
    raise CliError(Exit.USAGE, f"--statistic is {text!r}: must be one of {', '.join(sorted(PLAIN))}, or such as p99")


def thresholds(
    ctx: typer.Context,
    name: Annotated[
        str, typer.Argument(help=f"A metric of CloudWatch, {FORM}, with all its dimensions; or the name of a check.")
    ],
    days: Annotated[int, typer.Option(min=1, max=LONGEST_DAYS, help="The days of history, until now.")] = 30,
    fleet: Annotated[
        str | None, typer.Option(metavar="NAME|FLEET", help="The name or id of the fleet whose nodes have the check.")
    ] = None,
    above: Annotated[
        bool | None, typer.Option("--above/--below", help="Where values are bad. Default: judged by the name.")
    ] = None,
    statistic: Annotated[
        str | None,
        typer.Option(
            callback=_statistic,
            help="What a value is, such as p99 or Sum. Default: Average; for checks the worst of all nodes.",
        ),
    ] = None,
    datapoints: Annotated[
        int, typer.Option(min=1, max=24, help="The values in a row after which the alarm goes off.")
    ] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document, with all alarms and hours.")] = False,
) -> None:
    """Propose a threshold from measured history, and show the alarms that it would have raised. Changes nothing.

    It is the lowest of four values that would have raised at most one alarm a week; the highest one if values below are
    bad. The alarms are in-sample. So it also learns from the first three quarters of the period, and judges by the
    last.

    Reads CloudWatch with your own rights, cloudwatch:GetMetricData. Exits with 15 if there is too little data.
    """
    metric = _metric(ctx, name, fleet)
    side = metric.usual_side if above is None else Side.ABOVE if above else Side.BELOW
    statistic = statistic or metric.usual_statistic(side)
    session = aws.make_light_session(ctx.obj.profile, ctx.obj.region)
    history = MetricReader(aws.client(session, "cloudwatch")).read(metric, statistic, days, times.now())
    try:
        proposal = propose(history, side, datapoints)
    except TooLittleError as error:
        raise CliError(Exit.UNKNOWN, f"{metric}: {error}; nothing was changed") from None
    if datapoints * history.period > LONGEST_WINDOW:
        raise CliError(
            Exit.USAGE,
            f"--datapoints {datapoints}: an alarm looks back at most 7 days, and a value of {metric} covers "
            f"{duration(history.period)}: use at most {LONGEST_WINDOW // history.period}",
        )
    reply = Answer(metric, statistic, days, history, proposal, hours_of_week(history, side, None))
    command = reply.command(session.region_name, ctx.obj.profile)
    if as_json:
        show.document(reply.document(command))
    else:
        _tell(reply, command, judged_by_name=above is None)


def _metric(ctx: typer.Context, name: str, fleet: str | None) -> Metric:
    """Returns the metric that a person means.

    Raises:
        CliError: USAGE, or the deployment's answer about a fleet.
    """
    try:
        if "/" in name or "{" in name:
            if fleet is not None:
                raise CliError(Exit.USAGE, f"--fleet is for checks, and {name!r} is a metric: remove one of them")
            return parse(name)
        if fleet is not None and names.RUN.fullmatch(fleet):
            fleet = str(connection(ctx).client.benchmarks.fleet(fleet)["fleet"]["name"])
        return check_metric(name, ctx.obj.deployment, fleet)
    except BadNameError as error:
        raise CliError(Exit.USAGE, str(error)) from None


def _tell(reply: Answer, command: str, *, judged_by_name: bool) -> None:
    for line in reply.lines():
        show.say(line)
    if judged_by_name:
        other = Side.BELOW if reply.proposal.side is Side.ABOVE else Side.ABOVE
        show.note(f"judged by the name, values {reply.proposal.side} are bad: --{other} turns this around")
    show.table(answer.COLUMNS, reply.candidates(), title=" ")
    show.say(f"\n{reply.in_sample()}")
    if rows := reply.alarms():
        show.table(answer.ALARM_COLUMNS, rows)
    if reply.alarms_left_out:
        show.say(f"and {reply.alarms_left_out:,} earlier ones: --json lists them")
    show.say(reply.trial())
    show.say(reply.weekly())
    for doubt in reply.proposal.doubts:
        show.note(f"note: {doubt}", style="yellow")
    show.say(f"\nNothing was changed. This creates the alarm; add --alarm-actions to be told:\n  {command}")
