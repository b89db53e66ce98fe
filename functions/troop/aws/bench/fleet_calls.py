"""Calls the function that maintains standing fleets, without waiting for it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

logger = Logger()


@dataclass(frozen=True)
class FleetCalls:
    """Calls to the function.

    Attributes:
        client: Lambda's.
        function: the function's name or ARN.
    """

    client: Any
    function: str

    def keep(self, run: str) -> None:
        """Starts a check of a fleet now. If the call fails, the workflow's next check does the same."""
        payload = json.dumps({"step": "keep", "run": run}).encode()
        try:
            self.client.invoke(FunctionName=self.function, InvocationType="Event", Payload=payload)
        except (BotoCoreError, ClientError) as error:
            logger.warning("a fleet waits for its next check", run=run, error=str(error))
