"""Builds keys in the results bucket. A test compares them with :mod:`troop.bench.definition.names`, which needs a
newer Python.
"""

from __future__ import annotations


class Keys:
    """The keys of one run and cell.

    Args:
        role_id: of the nodes' IAM role. IAM allows a node to write only under this id with its own; "" for none.
    """

    def __init__(self, run: str, cell: str, role_id: str = "") -> None:
        self._writer = f"{role_id}:" if role_id else ""
        self._run = f"runs/{run}/"
        self._cell = f"{self._run}{cell}/"

    @property
    def definition(self) -> str:
        return f"{self._cell}definition.json"

    def file(self, name: str) -> str:
        return f"{self._run}files/{name}"

    def artifact(self, sha256: str) -> str:
        return f"artifacts/{sha256}"

    @property
    def data(self) -> str:
        """The beginning of the keys of objects that scripts create to measure with."""
        return f"data/{self._cell[len('runs/') :]}"

    @property
    def roster(self) -> str:
        return f"{self._cell}roster.json"

    def targets(self, role: str) -> str:
        return f"{self._cell}targets/{role}.json"

    def barrier(self, phase: str) -> str:
        return f"{self._cell}barriers/{phase}.json"

    def node(self, node: str) -> str:
        return f"{self._cell}nodes/{self._writer}{node}.json"

    def summary(self, phase: str, node: str) -> str:
        return f"{self._cell}phases/{phase}/{self._writer}{node}.json"

    def interruption(self, node: str) -> str:
        return f"{self._cell}interruptions/{self._writer}{node}.json"

    def fault(self, step: str, node: str) -> str:
        return f"{self._cell}faults/{step}/{self._writer}{node}.json"

    @property
    def queue(self) -> str:
        return f"{self._cell}queue.json"

    @property
    def orders(self) -> str:
        return f"{self._cell}orders.json"

    def report(self, node: str) -> str:
        return f"{self._cell}reports/{self._writer}{node}.json"

    def live(self, node: str) -> str:
        return f"{self._cell}live/{self._writer}{node}.json"

    def output(self, phase: str, node: str) -> str:
        return f"{self._cell}output/{phase}/{self._writer}{node}.log.gz"
