"""Asks the deployment's chaos which units benchmarks may not hit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from troop.shared.errors import TroopError


class UnansweredObjectionsError(TroopError):
    """The function that knows the units' policies has failed."""


@dataclass(frozen=True)
class UnitObjections:
    """Calls to the function that requests hits on units.

    Attributes:
        client: Lambda's.
        function: its ARN; None without the setting ``under_load``.
    """

    client: Any
    function: str | None

    def read(self, units: Sequence[str]) -> dict[str, str]:
        """Returns a sentence for each unit that may not be hit, by unit.

        Raises:
            UnansweredObjectionsError: the function failed, or the stack has none yet.
            ClientError: Lambda refused.
        """
        if self.function is None:
            raise UnansweredObjectionsError("the deployment has no function that knows the units: deploy it again")
        answer = self.client.invoke(FunctionName=self.function, Payload=json.dumps({"units": list(units)}).encode())
        document = json.loads(answer["Payload"].read())
        if "FunctionError" in answer:
            why = str(document.get("errorMessage", ""))[:200] if isinstance(document, dict) else ""
            raise UnansweredObjectionsError(f"the policies of {', '.join(units)} could not be read: {why}")
        return dict(document["objections"])
