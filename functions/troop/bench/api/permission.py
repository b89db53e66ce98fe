"""Checks that a caller who lets a benchmark hit units may terminate on demand."""

from __future__ import annotations

import json
from collections.abc import Sequence

from troop.bench.wiring import services
from troop.shared.api.errors import CodedError
from troop.shared.errors import ErrorCode
from troop.shared.wiring import environment


def check_permit(caller: str, key: str, units: Sequence[str]) -> None:
    """Checks for the permit that ``POST /terminations`` gives; without units none is needed.

    Args:
        caller: ARN of the caller.
        key: of the run, or the name of the schedule.
        units: that the benchmark hits.

    Raises:
        CodedError: 403, the caller has none.
    """
    if units and not services.permits().covers(caller, key, units, environment.now()):
        body = json.dumps({"benchmark": key, "units": list(units)})
        raise CodedError(
            403,
            ErrorCode.NO_PERMIT,
            f"the benchmark hits {', '.join(units)}, so whoever starts or schedules it must have the right to "
            f"terminate on demand: send POST /terminations with {body} first, which permits it for an hour",
        )
