"""Asks the deployment's chaos which units benchmarks may hit, and to hit them while a benchmark loads them.

An answer says what has become of a request. A function that fails is an answer, too: a benchmark goes on without it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from troop.bench.aws.cell_store import content
from troop.bench.definition.roster import LONGEST_ERROR
from troop.shared.errors import TroopError
from troop.shared.moments import iso

TRIES = 2
"""The number of calls until the function answers: a repeated request has the same key, so it hits nothing twice."""

MOST_BYTES = 64 * 1024
"""The most bytes of an answer that are read."""


class UnansweredError(TroopError):
    """The function has failed, or has given no answer that can be read; the message says why."""


@dataclass(frozen=True)
class UnitRequests:
    """Calls to the function that hits units.

    Attributes:
        client: Lambda's, with a time-out that the function keeps.
        function: its name or ARN; None if the deployment does not allow hits.
    """

    client: Any
    function: str | None

    def hit(
        self,
        run: str,
        cell: str,
        step: str,
        number: int,
        unit: str,
        choice: str | None,
        now: datetime,
        latest: datetime,
    ) -> dict[str, Any]:
        """Requests a fault on an instance of a unit. A repeated request returns the event of the first one.

        Args:
            step: name of the step whose load it is for.
            number: of the fault in its phase.
            choice: the fault, as ``POST /terminations`` names it; None for one that the unit's policy allows.
            now: the moment of the request.
            latest: after this moment, only a request that was made before is answered.

        Returns:
            ``{"outcome": "DONE" | "REFUSED", "why", "event"}``, see :class:`troop.chaos.flows.under_load.UnderLoad`.

        Raises:
            UnansweredError: nobody knows whether it hits the unit.
        """
        where: dict[str, Any] = {"run": run, "cell": cell, "step": step, "number": number}
        return self._answer({**where, "unit": unit, "choice": choice, "requested_at": iso(now), "latest": iso(latest)})

    def read(self, event_id: str) -> dict[str, Any]:
        """Reads what has become of an event, which can still be abandoned. Returns the same as :meth:`hit`.

        Raises:
            UnansweredError: it cannot be read.
        """
        return self._answer({"event_id": event_id})

    def objections(self, units: Sequence[str]) -> dict[str, str]:
        """Returns a sentence for each unit that benchmarks may not hit, by unit.

        Raises:
            UnansweredError: it cannot be read.
        """
        return dict(self._document({"units": list(units)})["objections"])

    def _answer(self, payload: dict[str, Any]) -> dict[str, Any]:
        document = self._document(payload)
        if document.get("outcome") not in ("DONE", "REFUSED"):
            raise UnansweredError(f"the function for units answered {json.dumps(document)}"[:LONGEST_ERROR])
        return document

    def _document(self, payload: dict[str, Any]) -> dict[str, Any]:
        if self.function is None:
            raise UnansweredError("the deployment's setting troop:under_load is false, so it hits no unit")
        for left in range(TRIES - 1, -1, -1):
            try:
                return self._call(payload)
            except UnansweredError:
                if not left:
                    raise
        raise AssertionError("the last try returns or raises")

    def _call(self, payload: dict[str, Any]) -> dict[str, Any]:
        try:
            answer = self.client.invoke(FunctionName=self.function, Payload=json.dumps(payload).encode())
            body = content({"Body": answer["Payload"]}, MOST_BYTES)
            document = json.loads(body)
        except (BotoCoreError, ClientError, ValueError) as error:
            raise UnansweredError(f"the function for units failed: {error}"[:LONGEST_ERROR]) from error
        if "FunctionError" in answer or not isinstance(document, dict):
            text = document.get("errorMessage") if isinstance(document, dict) else document
            raise UnansweredError(f"the function for units failed: {text}"[:LONGEST_ERROR])
        return document
