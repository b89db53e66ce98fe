"""Defines saved queries over the functions' logs for CloudWatch Logs Insights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.functions import Functions

FUNCTIONS = (
    *("decide", "terminate", "check_recovery", "hear", "inject", "sweep"),
    *("notify", "api", "watchdog", "widgets", "risks"),
)
BENCHMARK_FUNCTIONS = ("launch", "cell", "fleet", "teardown", "report", "reaper")


@dataclass(frozen=True)
class Query:
    """A saved query.

    Attributes:
        title: its name after the deployment's.
        shows: what it lists, for the runbook.
        functions: the functions whose logs to query, as far as the deployment has them.
        lines: the query, line by line; the console asks for the time range.
    """

    title: str
    shows: str
    functions: Sequence[str]
    lines: Sequence[str]

    @property
    def text(self) -> str:
        """The query as text for Logs Insights."""
        return "\n".join(self.lines)


QUERIES = (
    Query(
        "Why was a unit skipped today",
        "each tick's decision about one unit; replace `UNIT` with its name",
        ("decide",),
        (
            "# Replace UNIT with the unit's name.",
            "fields @timestamp, day, reason, detail, rolled, probability, correlation_id",
            '| filter message = "decision" and unit = "UNIT"',
            "| sort @timestamp desc",
            "| limit 200",
        ),
    ),
    Query(
        "Decisions by reason",
        "how many units had which reason, tick by tick",
        ("decide",),
        (
            'filter message = "decision"',
            "| stats count(*) as decisions by bin(15m) as tick, reason",
            "| sort tick desc, decisions desc",
            "| limit 1000",
        ),
    ),
    Query(
        "Terminations and recoveries",
        "terminations, refusals of the final check, recoveries, failed recoveries, and events that a sweep closed",
        ("terminate", "check_recovery", "hear", "sweep"),
        (
            "# Without checks of groups that have not recovered yet.",
            "fields @timestamp, event_id, status, verdict, reason, instance_id, recovery_seconds, detail, error",
            '| filter message = "termination" or (message in ["recovery_check", "swept"] and status != "TERMINATED")',
            "| sort @timestamp desc",
            "| limit 1000",
        ),
    ),
    Query(
        "Errors",
        "errors by tick, event or request, with count and times",
        (*FUNCTIONS, *BENCHMARK_FUNCTIONS),
        (
            "# By tick (its execution), event or request. Lambda's own reports (crash, memory, timeout) have none "
            "of these;",
            "# they are JSON or, in GovCloud and China, text.",
            "fields coalesce(exception_name, errorType) as exception, "
            "coalesce(message, errorMessage, @message) as said",
            '| filter level = "ERROR" or ispresent(errorType) '
            r"or @message like /^\[ERROR\]|Task timed out|Runtime exited/",
            "| stats count(*) as errors, min(@timestamp) as first_seen, max(@timestamp) as last_seen "
            "by correlation_id, service, exception, said",
            "| sort last_seen desc",
            "| limit 1000",
        ),
    ),
    Query(
        "All of a tick or an event",
        "everything from the decision to the notification; replace `ID` with the tick's execution or the event's id",
        ("decide", "terminate", "check_recovery", "hear", "inject", "sweep", "notify"),
        (
            "# Replace ID with the execution of a tick, or an event's id: the API returns both for every event.",
            "fields @timestamp, service, message, event_id, unit, status, reason, detail, error, execution",
            '| filter correlation_id = "ID" or execution = "ID" or event_id = "ID"',
            "| sort @timestamp asc",
            "| limit 10000",
        ),
    ),
    Query(
        "All of a run",
        "all steps of a run or a standing fleet, and of its teardown; replace `RUN` with its id",
        BENCHMARK_FUNCTIONS,
        (
            "# Replace RUN with the id of a run or of a standing fleet.",
            "fields @timestamp, service, message, correlation_id, function_request_id, exception_name, exception",
            '| filter correlation_id = "RUN"',
            "| sort @timestamp asc",
            "| limit 10000",
        ),
    ),
    Query(
        "Slowest requests of the API",
        "requests with their callers",
        ("api",),
        (
            "fields @timestamp, duration_ms, method, path, status, caller, correlation_id",
            '| filter message = "request"',
            "| sort duration_ms desc",
            "| limit 50",
        ),
    ),
)


class Queries(Construct):
    """The saved queries, in a folder with the deployment's name in the console."""

    def __init__(self, scope: Construct, construct_id: str, *, functions: Functions) -> None:
        super().__init__(scope, construct_id)
        for query in QUERIES:
            groups = [functions.log_groups[name] for name in query.functions if name in functions.log_groups]
            if groups:  # CloudWatch Logs would accept a query without a log group, which finds nothing
                logs.CfnQueryDefinition(
                    self,
                    query.title.title().replace(" ", ""),
                    name=f"{cdk.Aws.STACK_NAME}/{query.title}",
                    query_string=query.text,
                    log_group_names=[group.log_group_name for group in groups],
                )
