"""Answers the workflows that wait by a task token."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

OVER = frozenset({"InvalidToken", "TaskDoesNotExist", "TaskTimedOut"})
"""Codes of errors that say that no task waits for a token any more: it was answered, or its time was up."""


@dataclass(frozen=True)
class TaskTokens:
    """Sends answers to Step Functions."""

    client: Any

    def succeed(self, token: str, output: Mapping[str, Any]) -> bool:
        """Ends the task that waits for the token, with its output; False if none waits for it any more."""
        try:
            self.client.send_task_success(taskToken=token, output=json.dumps(output))
        except ClientError as error:
            if error.response["Error"]["Code"] not in OVER:
                raise
            return False
        return True
