"""Calls functions of the deployment without waiting for them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

logger = Logger()


@dataclass(frozen=True)
class _Calls:
    """Calls to one function.

    Attributes:
        client: Lambda's.
        function: the function's name or ARN.
    """

    client: Any
    function: str

    def _start(self, **payload: str) -> None:
        self.client.invoke(FunctionName=self.function, InvocationType="Event", Payload=json.dumps(payload).encode())


class FleetCalls(_Calls):
    """Calls to the function that maintains standing fleets."""

    def keep(self, run: str) -> None:
        """Starts a check of a fleet now. If the call fails, the workflow's next check does the same."""
        try:
            self._start(step="keep", run=run)
        except (BotoCoreError, ClientError) as error:
            logger.warning("a fleet waits for its next check", run=run, error=str(error))


class ReportCalls(_Calls):
    """Calls to the function that makes reports."""

    def make(self, run: str) -> None:
        """Starts making a run's report. Lambda retries a failure once.

        Raises:
            ClientError: Lambda refused.
        """
        self._start(run=run)
