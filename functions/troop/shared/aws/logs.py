"""Defines how functions log: every line, also of a failure, carries an id."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from troop.shared.aws.metrics import emit
from troop.shared.errors import RunClosedError
from troop.shared.metrics import Metric
from troop.shared.variables import Variable

Handler = Callable[[dict[str, Any], LambdaContext], dict[str, Any]]


def step(logger: Logger, correlation: str) -> Callable[[Handler], Handler]:
    """Decorates a handler: its log lines describe the call and carry a ``correlation_id``, and its exceptions are
    logged the same way before Lambda sees them.

    Args:
        correlation: the path in the handler's event to the id, with dots between keys; without a value there, lines
            have no id.
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
                # A run that was closed meanwhile ends its steps normally, for example when a user stops it: not a
                # failure.
                if not isinstance(error, RunClosedError) and (deployment := os.environ.get(Variable.DEPLOYMENT)):
                    emit(deployment, {Metric.STEPS_FAILED: 1})
                raise

        return logged

    return decorate


def _within(event: Any, path: str) -> Any:
    for key in path.split("."):
        event = event.get(key) if isinstance(event, dict) else None
    return event
