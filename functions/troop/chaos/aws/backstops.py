"""Creates backstops: one-time schedules that continue a lasting fault although its workflow has died."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError

_SECONDS = 3600
_ATTEMPTS = 185


@dataclass(frozen=True)
class Backstops:
    """The backstops in EventBridge Scheduler, which deletes each one when it has called.

    Attributes:
        client: EventBridge Scheduler's.
        group: the name of the deployment's schedule group for backstops.
        role: ARN of the role with which Scheduler calls the function.
        function: ARN of the function.
    """

    client: Any
    group: str
    role: str
    function: str

    def arm(self, event_id: str, at: datetime) -> None:
        """Creates the call of ``{"event_id", "due"}`` for an event within 60 seconds from a moment on. One that exists
        stays. The moment is a part of the name: a schedule that has called is deleted at an unknown time, so that a
        change of it could be lost.

        Raises:
            ClientError, BotoCoreError: there may be none.
        """
        moment = at.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat()
        try:
            self.client.create_schedule(
                Name=f"{hashlib.sha256(event_id.encode()).hexdigest()[:32]}-{moment.translate(_DIGITS)}",
                GroupName=self.group,
                Description=f"Proves the end of {event_id}"[:512],
                ScheduleExpression=f"at({moment})",
                ScheduleExpressionTimezone="UTC",
                FlexibleTimeWindow={"Mode": "OFF"},
                ActionAfterCompletion="DELETE",
                Target={
                    "Arn": self.function,
                    "RoleArn": self.role,
                    "Input": json.dumps({"event_id": event_id, "due": "<aws.scheduler.scheduled-time>"}),
                    "RetryPolicy": {"MaximumEventAgeInSeconds": _SECONDS, "MaximumRetryAttempts": _ATTEMPTS},
                },
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConflictException":
                raise


_DIGITS = str.maketrans("", "", "-:")
