"""Shows the custom widgets of CloudWatch dashboards: gets a widget's parameters, and returns HTML. It does not know the
viewer.
"""

from __future__ import annotations

import os
from time import perf_counter
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext
from botocore.exceptions import ClientError

from troop.bench.aws.run_rows import BadCursor
from troop.chaos.aws import decision_queries, event_queries
from troop.chaos.aws.groups import BadToken
from troop.dashboard import page, widget_request
from troop.dashboard.commands import Shell
from troop.dashboard.console import Console
from troop.dashboard.describe import describe
from troop.dashboard.wiring import widgets
from troop.shared.errors import TroopError
from troop.shared.variables import Variable
from troop.shared.wiring import environment

logger = Logger()

_LOST = (BadToken, BadCursor, decision_queries.BadPosition, event_queries.BadPosition)


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> str:
    """Shows a widget: ``{"widget", ..., "widgetContext"}`` -> HTML; with ``describe`` Markdown. A failure becomes a
    sentence in the widget, and a line in the log.
    """
    if event.get("describe"):
        return describe(event.get("widget"))
    began, viewer = perf_counter(), widget_request.viewer(event)
    try:
        request = widget_request.parse(event)
        console = Console.from_arn(context.invoked_function_arn)
        shell = Shell(environment.settings().deployment, console.region)
        now = environment.now()
        results = os.environ.get(Variable.RESULTS_BUCKET)
        frame = page.Frame(context.invoked_function_arn, viewer, console, shell, now, results)
        html = page.page(widgets.widgets().view(request, now), frame)
    except widget_request.BadParameter as bad:
        return page.message(str(bad), viewer)
    except _LOST:
        return page.message("This page of the listing no longer exists: refresh the widget.", viewer)
    except Exception as error:  # a dashboard must not show a stack trace
        logger.exception("the widget failed", widget=event.get("widget"))
        return page.message(_sentence(error, context.aws_request_id), viewer)
    took = round((perf_counter() - began) * 1000)
    logger.info("widget", widget=request.widget.value, duration_ms=took, size=len(html))
    return html


def _sentence(error: Exception, request: str) -> str:
    if isinstance(error, TroopError):
        return f"This cannot be shown: {error}."
    where = f"refresh the widget, or look for request {request} in the function's log"
    if isinstance(error, ClientError):
        code, operation = error.response["Error"].get("Code", "an error"), error.operation_name
        return f"This cannot be shown because AWS answered {operation} with {code}: {where}."
    return f"This cannot be shown because of an unexpected error: {where}."
