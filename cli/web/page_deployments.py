"""Serves the pages of many deployments: each has a server, an address and a token of its own, and shows nothing of the
others but what their overview says.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from typing import Any

from cli.client.deployments_file import ListedDeployment
from cli.client.everywhere import SECONDS, error_of_one
from cli.shared import aws, side_by_side
from cli.shared.errors import CliError, Exit
from cli.web.page_server import PageServer

_PARTS = ("health", "today", "open")
"""The parts of a deployment's overview that the overview of all shows."""

_PATIENCE = 1.0
"""Seconds for which an answer waits for rows: those that are ready are not to wait for one that hangs."""

_TOO_OLD = 2 * SECONDS
"""Seconds after which a row that nobody has fetched is read again."""


@dataclass
class PageDeployments:
    """The pages of the deployments of a file. One that does not answer has no page, and is asked again.

    Attributes:
        deployments: in the order of the file.
        open_page: connects to a deployment and creates its server; raises CliError.
    """

    deployments: Sequence[ListedDeployment]
    open_page: Callable[[ListedDeployment], PageServer]
    _pages: dict[str, PageServer] = field(default_factory=dict, repr=False)
    _locks: dict[str, threading.Lock] = field(default_factory=dict, repr=False)
    _readers: dict[str, _RowReader] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self._locks = {one.label: threading.Lock() for one in self.deployments}

    @property
    def labels(self) -> list[str]:
        return [one.label for one in self.deployments]

    def first(self) -> PageServer:
        """Returns the page of the deployment that answers first, and opens those of the others in the background.

        Raises:
            CliError: UNREACHABLE, if none does.
        """
        heard, opens = SimpleQueue[Any](), {label: partial(self.page, label) for label in self.labels}

        def ask() -> None:
            heard.put(side_by_side.answers(opens, seconds=SECONDS, heard=lambda _, answer: heard.put(answer)))

        threading.Thread(target=ask, daemon=True).start()
        while not isinstance(answer := heard.get(), dict):
            if isinstance(answer, PageServer):
                return answer
        why = "\n".join(f"{label}: {error}" for label, error in answer.items())
        raise CliError(Exit.UNREACHABLE, f"no deployment of the file answers:\n{why}")

    def page(self, label: str) -> PageServer:
        """Returns the page of a deployment, which serves from then on.

        Raises:
            CliError: USAGE, for a label that the file lacks; others if the deployment cannot be reached.
        """
        listed = next((one for one in self.deployments if one.label == label), None)
        if listed is None:
            raise CliError(Exit.USAGE, f"the file of deployments has no {label!r}")
        lock = self._locks[label]
        if not lock.acquire(timeout=SECONDS):
            raise CliError(Exit.UNREACHABLE, f"no answer within {SECONDS:g} seconds")
        try:
            if label not in self._pages:
                with error_of_one("it cannot be connected"):
                    page = self.open_page(listed)
                page.label, page.pages = label, self
                threading.Thread(target=page.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True).start()
                self._pages[label] = page
            return self._pages[label]
        finally:
            lock.release()

    def rows(self, labels: Sequence[str]) -> list[dict[str, Any]]:
        """Asks deployments side by side, and returns the rows that are ready within a second. The others are still
        asked: a later call with their labels returns them.
        """
        begin = time.monotonic()
        present = {label: one for label, one in self._readers.items() if begin - one.begin < _TOO_OLD}
        readers = {label: present.get(label) or _RowReader(partial(self.row, label)) for label in labels}
        self._readers |= readers
        for one in readers.values():
            one.join(max(0.0, begin + _PATIENCE - time.monotonic()))
        rows = {label: one.row for label, one in readers.items() if one.row}
        for label in rows:
            self._readers.pop(label, None)
        return list(rows.values())

    def row(self, label: str) -> dict[str, Any]:
        """Returns what the overview of all shows of a deployment; ``error`` says why it does not answer."""
        answer = side_by_side.answers({label: partial(self._row, label)}, seconds=SECONDS)[label]
        if isinstance(answer, CliError):
            return {"label": label, "error": str(answer)}
        return {"label": label, "error": None, **answer}

    def _row(self, label: str) -> dict[str, Any]:
        try:
            with aws.translated_errors():
                page = self.page(label)
                parts = {name: partial(page.overview.part, name) for name in _PARTS}
                answers = side_by_side.answers({"switch": page.client.switch, **parts})
        except CliError:
            raise
        except Exception as error:
            # Versions differ, and this one must not hide the others.
            raise CliError(Exit.API_FAILED, f"its answer makes no sense to this command ({error!r})") from error
        if isinstance(answers["switch"], CliError):
            raise answers["switch"]
        return {"about": page.about, **answers}

    def close(self) -> None:
        """Ends all servers."""
        side_by_side.answers({label: partial(_end, page) for label, page in self._pages.items()})


class _RowReader(threading.Thread):
    """Reads a row, which is None until it is there."""

    def __init__(self, read: Callable[[], dict[str, Any]]) -> None:
        super().__init__(daemon=True)
        self.row: dict[str, Any] | None = None
        self.begin = time.monotonic()
        self._read = read
        self.start()

    def run(self) -> None:
        self.row = self._read()


def _end(page: PageServer) -> None:
    page.shutdown()
    page.server_close()
