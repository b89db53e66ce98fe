"""Implements `troop prove`: answers on AWS what no local test can answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer
from botocore.exceptions import BotoCoreError, ClientError

from cli.bench import files as bench_files
from cli.bench import follow as bench_follow
from cli.bench import starting
from cli.bench.artifacts import Staging
from cli.client.connection import Connection, connection
from cli.prove import steps
from cli.prove.ledger import Ledger
from cli.prove.model import Answer, Kind, Question, Verdict
from cli.prove.probes import Probes
from cli.prove.questions import QUESTIONS, selected
from cli.prove.redaction import Redaction
from cli.prove.removers import removers
from cli.prove.runs import FLEET, Run
from cli.shared import aws, context, show
from cli.shared.errors import CliError, Exit


def prove(
    ctx: typer.Context,
    only: Annotated[list[str] | None, typer.Option("--only", help="Ask only this question; repeatable.")] = None,
    only_list: Annotated[bool, typer.Option("--list", help="List the questions with their prices, and end.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Agree to all steps in advance.")] = False,
    out: Annotated[Path, typer.Option("--out", help="The file of answers.")] = Path("troop-answers.json"),
) -> None:
    """Answer on AWS what no local test can. Shows each step with its price, and asks first.

    Writes one file of answers, without account numbers, names and addresses, that you can send to others.
    """
    try:
        questions = selected(only or [])
    except KeyError as unknown:
        names = ", ".join(question.name for question in QUESTIONS)
        raise CliError(Exit.USAGE, f"--only {unknown.args[0]}: must be one of {names}") from None
    if only_list:
        rows = [(one.name, one.kind.value, f"${one.price}", one.text) for one in questions]
        show.table(("name", "step", "at most", "question"), rows, whole=True)
        return
    if not out.name or not out.parent.is_dir():
        raise CliError(Exit.USAGE, f"--out {out}: must be a file in a folder that exists")
    if not yes and not context.interactive():
        raise CliError(Exit.NOT_CONFIRMED, "each step asks first: rerun with --yes to agree to all")
    conn, session = connection(ctx), aws.make_session(ctx.obj.profile, ctx.obj.region)
    ledger = Ledger(out.with_suffix(".created.json"), removers(session, conn.client))
    if not ledger.remove_all():
        raise CliError(Exit.FAILED, "an earlier command has left something: remove it first")
    probes = Probes(
        session,
        conn.deployment,
        conn.client,
        ledger,
        partial(_run, ctx, conn, ledger),
        partial(_start_fleet, conn, ledger),
    )
    redaction, answers = Redaction(_names(conn, session)), list[Answer]()
    try:
        for question in questions:
            answers.append(_ask(question, getattr(probes, question.probe), yes=yes))
            show.say(f"  {answers[-1].verdict.value}: {answers[-1].detail}")
            if not ledger.remove_all():
                show.note("some things remain; this command tries again at its end and at its next start")
            steps.write(
                out,
                answers,
                redaction,
                region=conn.deployment.region,
                local=aws.is_local(),
                at=datetime.now(UTC),
            )
    finally:
        clean = ledger.remove_all()
    show.say(f"the answers, redacted: {out}")
    if not clean or any(one.verdict is Verdict.FAILED for one in answers):
        raise typer.Exit(Exit.FAILED)


def _ask(question: Question, probe: Callable[[], Any], *, yes: bool) -> Answer:
    show.say(f"{question.name}: {question.text}")
    show.say(f"  {question.why}")
    show.say(f"  This {question.step}. It costs at most ${question.price}, and needs {', '.join(question.needs)}.")
    try:
        context.confirm("  Run it" if question.kind is Kind.READS else f"  Run it ({question.kind})", yes)
    except CliError:
        return Answer(question, Verdict.SKIPPED, "you did not agree")
    return steps.answer(question, probe, local=aws.is_local())


def _run(ctx: typer.Context, conn: Connection, ledger: Ledger, run: Run) -> Mapping[str, Any]:
    """Carries out a run that cannot cost more than its price here, and returns its record."""
    changes = {"budget": float(run.price), "attempts": 1, **run.changes}
    if aws.is_local():
        if run.locally is None:
            raise CliError(Exit.FAILED, "its nodes are processes of this machine, which stays as it is")
        changes |= run.locally
    source, client = bench_files.load(run.folder, run.size, changes), conn.client.benchmarks
    most = starting.estimate(client, source, run.size, changes)["most"]
    if most > run.price:
        raise CliError(Exit.REFUSED, f"it could cost {most} here: more than {run.price}")
    session = partial(aws.make_session, ctx.obj.profile, ctx.obj.region)
    staging = Staging(client, source.path.parent, session, show.note)
    for artifact in source.artifacts():
        staging.stage(artifact)
    started, _ = starting.start(client, source, run.size, changes, str(uuid4()))
    ledger.add("run", started["run"])
    return bench_follow.lines(client, started["run"], show.note)


def _start_fleet(conn: Connection, ledger: Ledger) -> str:
    source = bench_files.load_fleet(FLEET)
    request = {"definition": source.document, "set": {}, "files": source.encoded(), "key": str(uuid4())}
    started, _ = conn.client.benchmarks.start_fleet(request)
    ledger.add("fleet", started["fleet"])
    return str(started["fleet"])


def _names(conn: Connection, session: Any) -> list[str]:
    """Returns names that answers may contain: of the stack, its resources and outputs, and of the caller."""
    names = list(conn.deployment.outputs.values())
    try:
        names += aws.client(session, "sts").get_caller_identity()["Arn"].split("/")[1:]
        pages = aws.client(session, "cloudformation").get_paginator("list_stack_resources")
        for page in pages.paginate(StackName=conn.deployment.name):
            names += [one.get("PhysicalResourceId", "") for one in page["StackResourceSummaries"]]
    except (BotoCoreError, ClientError) as error:
        raise CliError(Exit.FORBIDDEN, f"cannot list what to redact: {' '.join(str(error).split())}") from None
    own = [] if conn.deployment.name == context.Options().deployment else [conn.deployment.name]
    return [*own, *(name for name in names if len(name) > _SHORT)]


_SHORT = 5
"""Characters of a name that could be a part of ordinary words."""
