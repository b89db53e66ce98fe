"""Asks many deployments side by side; one that does not answer never stops the others."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cli.client.connection import Connection, connect_in, distinct_notes
from cli.shared import listings, show, side_by_side, watching
from cli.shared.errors import CliError, Exit
from cli.shared.listings import Column, Form, Record

if TYPE_CHECKING:
    from cli.client.deployments_file import ListedDeployment

SECONDS = 20.0
"""The time for which a deployment may answer one question."""

PART_SECONDS = 10.0
"""The time for a part of the answer, without which the others are shown."""

AT_ONCE, MOST_AT_ONCE = 16, 64
"""Deployments that are asked at one time, and those that are halted at one time."""


@dataclass(frozen=True)
class Reply:
    """The answer of a deployment.

    Attributes:
        answer: what it answers; None after an error.
        error: why it does not answer.
        connection: None if there was none.
    """

    deployment: ListedDeployment
    answer: Any = None
    error: CliError | None = None
    connection: Connection | None = None

    @property
    def answered(self) -> bool:
        """Whether the deployment answered, even if it only said that it has no such unit."""
        return self.error is None or self.error.code is Exit.NO_SUCH_UNIT

    def in_words(self, sentence: Callable[[Any], str]) -> str:
        """Returns the reply as a sentence.

        Args:
            sentence: describes the answer.
        """
        if self.error:
            return f"{'' if self.answered else 'does not answer: '}{self.error}"
        return sentence(self.answer)

    def document(self) -> dict[str, Any]:
        """Returns the reply in JSON's types."""
        listed, conn = self.deployment, self.connection
        return {
            "deployment": listed.label,
            "name": listed.name,
            "region": listed.region,
            "account": conn.deployment.account if conn else None,
            "stage": listed.stage,
            "answered": self.answered,
            "error": str(self.error) if self.error else None,
            "answer": self.answer,
        }


def connect(listed: ListedDeployment) -> Connection:
    """Finds a deployment of the file.

    Raises:
        CliError: credentials, role, region, deployment or network are wrong.
    """
    from cli.shared import aws  # here, because help and completion need no AWS SDK

    session = aws.make_light_session(listed.profile, listed.region, listed.role, listed.external_id, shared=True)
    note = distinct_notes()
    return connect_in(session, listed.name, lambda text: note(f"{listed.label}: {text}"), elsewhere=False)


@contextmanager
def error_of_one(problem: str) -> Iterator[None]:
    """Makes any error inside the block, such as one of a program that a profile names, that of one deployment.

    Args:
        problem: the meaning of an error that is not of this command.

    Raises:
        CliError: for any error.
    """
    from cli.shared import aws

    try:
        with aws.translated_errors():
            yield
    except CliError:
        raise
    except Exception as error:
        raise CliError(Exit.API_FAILED, f"{problem} ({type(error).__name__}: {error})") from error


@dataclass(frozen=True)
class Row:
    """A record, and the label of the deployment that has it."""

    label: str
    record: Any


LABEL = Column("deployment", lambda row: row.label)


@dataclass(frozen=True)
class Table:
    """A table with the records of all deployments, and a column that says whose they are.

    Attributes:
        columns: of one deployment's records.
        records: returns the records in an answer.
        drop: see :func:`cli.shared.show.table`.
        sort, reverse: the order that somebody asks for.
        newest: whether the order is otherwise that of the key ``at``, the newest first, rather than that of the file.
        empty: what to say where there are no records.
    """

    columns: Sequence[Column]
    records: Callable[[Any], Sequence[Record]]
    drop: Sequence[str] = ()
    sort: str | None = None
    reverse: bool = False
    newest: bool = False
    empty: str = ""

    def try_out(self, answer: Any) -> None:
        """Makes the cells of an answer, so that what is wrong with it shows."""
        for record in self.records(answer):
            for column in self.columns:
                column.cell(record)

    def tell(self, form: Form, replies: Sequence[Reply]) -> None:
        """Prints the table."""
        rows = self.rows(replies)
        if self.newest:
            rows.sort(key=lambda row: str(row.record["at"]), reverse=True)
        columns = [LABEL, *map(_row_column, self.columns)]
        if rows:
            listings.tell(form, columns, listings.ordered(rows, columns, self.sort, self.reverse), {}, drop=self.drop)
        elif self.empty:
            show.note(self.empty)

    def rows(self, replies: Sequence[Reply]) -> list[Row]:
        """Returns the records of all answers, in the order of the replies."""
        answers = [(one.deployment.label, one.answer) for one in replies if not one.error]
        return [Row(label, record) for label, answer in answers for record in self.records(answer)]


def _row_column(column: Column) -> Column:
    order = column.order
    return replace(
        column,
        cell=lambda row: column.cell(row.record),
        order=(lambda row: order(row.record)) if order else None,
    )


@dataclass(frozen=True)
class Everywhere:
    """The deployments of a file, and the connections to those that have answered before."""

    deployments: Sequence[ListedDeployment]
    _connections: dict[str, Connection] = field(default_factory=dict, repr=False)

    def ask(
        self,
        question: Callable[[Connection], Any],
        seconds: float = SECONDS,
        at_once: int = AT_ONCE,
        heard: Callable[[Reply], None] = lambda _: None,
    ) -> list[Reply]:
        """Asks all deployments, and returns their replies in the order of the file.

        Args:
            question: asks one deployment, in a thread. Whatever it raises is the error of that deployment only.
            seconds: the time for each deployment, to connect included, but for a person to type codes.
            at_once: the most deployments that are asked at one time, of those that need no code and of each profile
                that asks for one.
            heard: called with each reply as it comes, by one thread at a time.
        """
        listed, hearing = {one.label: one for one in self.deployments}, threading.Lock()

        def hear(label: str, answer: Any) -> None:
            with hearing:
                heard(self._reply(listed[label], answer))

        def ask(labels: Sequence[str]) -> dict[str, Any]:
            requests = {label: partial(self._ask, listed[label], question) for label in labels}
            return side_by_side.answers(requests, at_once, seconds, hear)

        *signed_in, last = self._signed_in()
        waits = [side_by_side.begin(partial(ask, labels())) for labels in signed_in]
        answers = ask(last())
        for wait in waits:
            answers |= wait()
        return [self._reply(one, answers[label]) for label, one in listed.items()]

    def show(
        self,
        form: Form,
        question: Callable[[Connection], Any],
        *,
        table: Table | None = None,
        sentence: Callable[[Any], str] | None = None,
        watch: float | None = None,
        seconds: float = SECONDS,
    ) -> list[Reply]:
        """Asks all deployments, and prints their answers; or one document, with an entry for each deployment.

        Args:
            question: returns a document in JSON's types.
            table: shows the records of the answers.
            sentence: describes an answer in words.
            watch: see :func:`cli.shared.watching.repeat`.
            seconds: the time for each deployment.

        Returns:
            The replies.
        """

        def ask(conn: Connection) -> Any:
            answer = question(conn)
            if not listings.is_for_programs(form):
                if table:
                    table.try_out(answer)
                if sentence:
                    sentence(answer)
            return answer

        last: list[Reply] = []

        def tell_all(replies: list[Reply]) -> None:
            last[:] = replies
            tell(form, replies, table, sentence, repeated=watch is not None)

        watching.repeat(watch, lambda: self.ask(ask, seconds), tell_all)
        return last

    def among(self, labels: Collection[str]) -> Everywhere:
        """Returns those with some labels, with their connections."""
        return replace(self, deployments=[one for one in self.deployments if one.label in labels])

    def sign_in(self) -> None:
        """Lets a person type the codes for the credentials that need one, each once."""
        for labels in self._signed_in():
            labels()

    def _signed_in(self) -> list[Callable[[], list[str]]]:
        """Returns functions that return labels of deployments once their credentials are there: first of those that
        need no code, then of each profile that does.
        """
        from cli.shared import aws

        ready, waiting = list[str](), dict[aws.SharedCredentials, list[str]]()
        for one in self.deployments:
            labels = ready
            with suppress(Exception):  # it is the error of each deployment of the profile
                credentials = aws.shared_credentials(one.profile, one.region)
                if credentials.need_code:
                    labels = waiting.setdefault(credentials, [])
            labels.append(one.label)

        def signed_in(credentials: aws.SharedCredentials) -> list[str]:
            with suppress(Exception):  # as above
                credentials.sign_in()
            return waiting[credentials]

        return [lambda: ready, *(partial(signed_in, credentials) for credentials in waiting)]

    def _ask(self, listed: ListedDeployment, question: Callable[[Connection], Any]) -> Any:
        if listed.label not in self._connections:
            with error_of_one("it cannot be connected"):
                self._connections[listed.label] = connect(listed)
        with error_of_one("its answer makes no sense to this command"):  # versions differ
            return question(self._connections[listed.label])

    def _reply(self, listed: ListedDeployment, answer: Any) -> Reply:
        conn = self._connections.get(listed.label)
        if isinstance(answer, CliError):
            return Reply(listed, error=answer, connection=conn)
        return Reply(listed, answer, connection=conn)


def everywhere(ctx: typer.Context, needless: Mapping[str, object] | None = None) -> Everywhere | None:
    """Returns the deployments of the running command with ``--all``; None without it.

    Args:
        needless: the values of options and arguments that only one deployment has.

    Raises:
        CliError: USAGE, for options that contradict it, or a wrong file.
    """
    if not ctx.obj.everywhere:
        return None
    if ctx.obj.typed:
        raise CliError(Exit.USAGE, "--all is every deployment of a file: remove -d, --region and --profile, or --all")
    if chosen := [option for option, value in (needless or {}).items() if value]:
        raise CliError(Exit.USAGE, f"only one deployment has {', '.join(chosen)}: remove that, or --all")
    from cli.client import deployments_file  # here: its YAML takes a tenth of a second

    file = ctx.obj.deployments or os.environ.get("TROOP_DEPLOYMENTS") or deployments_file.DEFAULT
    return Everywhere(deployments_file.read(Path(file)))


def tell(
    form: Form,
    replies: Sequence[Reply],
    table: Table | None = None,
    sentence: Callable[[Any], str] | None = None,
    *,
    repeated: bool = False,
    **more: Any,
) -> None:
    """Prints replies, as :meth:`Everywhere.show` does; each deployment that does not answer has a row.

    Args:
        more: what a document says beside its deployments.
    """
    if listings.is_for_programs(form):
        rows = (table or Table((), lambda answer: [answer])).rows(replies)
        lines = [{"deployment": None, **row.record} | {"deployment": row.label} for row in rows]
        lines += [{"deployment": one.deployment.label, "error": str(one.error)} for one in replies if one.error]
        listings.write(form, lines, {**more, "deployments": [one.document() for one in replies]}, repeated=repeated)
        return
    if table:
        table.tell(form, replies)
    facts = [(one.deployment.label, one.in_words(sentence or str)) for one in replies if one.error or sentence]
    show.table(("", ""), facts)


def merged(replies: Sequence[Reply], later: Sequence[Reply]) -> list[Reply]:
    """Returns replies, with the later ones of the same deployments in their places."""
    by_label = {one.deployment.label: one for one in later}
    return [by_label.get(one.deployment.label, one) for one in replies]


def finish(replies: Sequence[Reply], failed: bool = False) -> None:
    """Ends the command with the code of its replies, unless all deployments have answered.

    Args:
        failed: whether an answer is a failure.

    Raises:
        Exit: of typer.
    """
    code = Exit.FAILED if failed else Exit.OK
    if not all(one.answered for one in replies):
        code = Exit.UNREACHABLE
    elif all(one.error for one in replies):
        code = Exit.NO_SUCH_UNIT
    if code:
        raise typer.Exit(int(code))
