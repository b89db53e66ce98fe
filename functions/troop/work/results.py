"""Stores results, each once: the first one stands."""

from __future__ import annotations

from troop.work.errors import WorkError
from troop.work.queue_facts import QueueFacts
from troop.work.service import Service, code_of

WRITER = "x-amz-meta-troop-writer"
"""The header that names the write to which a result belongs."""
_EXISTS = 412


class Results:
    """The results of a fleet's tasks, for any number of threads."""

    def __init__(self, facts: QueueFacts, service: Service) -> None:
        self._facts, self._service = facts, service

    def put(self, task: str, content: bytes, writer: str) -> bool:
        """Stores a result unless there is one. Returns whether this one stands.

        Args:
            task: its id.
            writer: unique for this write.

        Raises:
            WorkError: S3 refused, or did not answer.
        """
        _, path = self._facts.result_path(task)
        headers = {"content-type": "application/octet-stream", "if-none-match": "*", WRITER: writer}
        reply = self._service.ask("PUT", path, headers, content)
        if reply.answer.status == 200:
            return True
        if reply.answer.status == _EXISTS:
            return reply.tries > 1 and self._writer(path) == writer
        code = code_of(reply.answer)
        raise WorkError(f"S3 answered {reply.answer.status} {code} to the result of {task}", reply.answer.status, code)

    def _writer(self, path: str) -> str:
        """Returns who wrote a result; empty if S3 does not say. An earlier try may have stored it without an answer."""
        return str(self._service.ask("HEAD", path, {}).answer.headers.get(WRITER, ""))
