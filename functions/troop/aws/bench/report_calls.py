"""Calls the function that makes reports, without waiting for it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ReportCalls:
    """Calls to the function.

    Attributes:
        client: Lambda's.
        function: the function's name or ARN.
    """

    client: Any
    function: str

    def make(self, run: str) -> None:
        """Starts making a run's report. Lambda retries a failure once.

        Raises:
            ClientError: Lambda refused.
        """
        payload = json.dumps({"run": run}).encode()
        self.client.invoke(FunctionName=self.function, InvocationType="Event", Payload=payload)
