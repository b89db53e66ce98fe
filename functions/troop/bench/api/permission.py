"""Checks that a caller who lets a benchmark hit units may terminate on demand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

from troop.shared.api.errors import CodedError
from troop.shared.aws.permits import run_of, schedule_of
from troop.shared.errors import ErrorCode
from troop.shared.wiring import environment
from troop.shared.wiring.permissions import permits


def check_permit(caller: str, kind: Literal["benchmark", "schedule"], key: str, units: Sequence[str]) -> None:
    """Checks for the permit that ``POST /terminations`` gives; without units none is needed.

    Args:
        caller: ARN of the caller.
        kind: what it starts or creates.
        key: of the run, or the name of the schedule.
        units: that the benchmark hits.

    Raises:
        CodedError: 403, the caller has none.
    """
    permitted = run_of(key) if kind == "benchmark" else schedule_of(key)
    if units and not permits().covers(caller, permitted, units, environment.now()):
        body = json.dumps({kind: key, "units": list(units)})
        raise CodedError(
            403,
            ErrorCode.NO_PERMIT,
            f"the benchmark hits {', '.join(units)}, so whoever starts or schedules it must have the right to "
            f"terminate on demand: send POST /terminations with {body} first, which permits it for an hour",
        )
