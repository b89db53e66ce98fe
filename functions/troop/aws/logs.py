"""How functions log: every line says what it belongs to, a failure too, and each decision is a line of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from troop.aws.metrics import emit
from troop.chaos.decisions import Decision
from troop.environment import Variable
from troop.errors import RunClosedError
from troop.metrics import Metric

Handler = Callable[[dict[str, Any], LambdaContext], dict[str, Any]]

MOST_GROUPS = 10
"""Groups that a decision's line names; ``group_count`` says how many there are."""

LONGEST_DETAIL = 1000
"""Characters of a detail in a decision's line; the table has all of it."""

# Without what is the same in all lines of a function, and of a name of its own so that it can be: a tick over very many
# units writes as many lines, and each byte of them is paid for.
_decisions = Logger(service="decisions", location=None, xray_trace_id=None)


def step(logger: Logger, correlation: str) -> Callable[[Handler], Handler]:
    """Decorates a handler: its lines tell of the call and carry a ``correlation_id``, and what it raises is such a line
    before Lambda sees it.

    Args:
        correlation: the key of the handler's event whose value is the id, or keys with dots between; for none the lines
            have none.
    """

    def decorate(handler: Handler) -> Handler:
        @logger.inject_lambda_context
        @wraps(handler)
        def logged(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
            logger.set_correlation_id(_within(event, correlation))
            try:
                return handler(event, context)
            except Exception as error:
                logger.exception("the step failed")
                # That a run was closed meanwhile is how steps end when somebody stops it: no failure of theirs.
                if not isinstance(error, RunClosedError) and (deployment := os.environ.get(Variable.DEPLOYMENT)):
                    emit(deployment, {Metric.STEPS_FAILED: 1})
                raise

        return logged

    return decorate


def _within(event: Any, path: str) -> Any:
    for key in path.split("."):
        event = event.get(key) if isinstance(event, dict) else None
    return event


def log_decisions(decisions: Iterable[Decision], execution: str) -> None:
    """One line for each decision; the record is the table, and this its copy for queries over many units and days."""
    _decisions.set_correlation_id(execution)
    for decision in decisions:
        _decisions.info(
            "decision",
            unit=decision.unit,
            day=decision.day.isoformat() if decision.day else None,
            reason=decision.reason,
            detail=decision.detail[:LONGEST_DETAIL],
            groups=list(decision.groups[:MOST_GROUPS]),
            group_count=len(decision.groups),
            rolled=decision.rolled,
            probability=decision.policy.probability.value,
        )
