"""Defines the REST API: history, policies, the switch, and benchmarks, for callers that IAM allows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.logs import make_log_group
from infra.settings import DeploymentSettings

STAGE = "v1"
ROUTES = (
    "GET /events",
    "GET /events/{id}",
    "GET /decisions",
    "GET /groups",
    "GET /groups/{unit}",
    "PATCH /groups/{unit}",
    "GET /policies",
    "GET /changes",
    "GET /risks",
    "PATCH /risks",
    "GET /switch",
    "PATCH /switch",
    "GET /health",
    "POST /terminations",
    "GET /simianarmy/api/v1/chaos",
    "POST /simianarmy/api/v1/chaos",
    "POST /benchmarks",
    "GET /benchmarks",
    "POST /benchmarks/artifacts",
    "POST /benchmarks/estimate",
    "POST /benchmarks/schedules",
    "GET /benchmarks/schedules",
    "DELETE /benchmarks/schedules/{name}",
    "GET /benchmarks/history",
    "GET /benchmarks/{run}",
    "DELETE /benchmarks/{run}",
    "GET /benchmarks/{run}/live",
    "GET /benchmarks/{run}/report",
    "POST /benchmarks/{run}/report",
    "POST /fleets",
    "GET /fleets",
    "POST /fleets/estimate",
    "GET /fleets/{fleet}",
    "PATCH /fleets/{fleet}",
    "DELETE /fleets/{fleet}",
    "POST /fleets/{fleet}/tasks",
    "GET /fleets/{fleet}/results",
)


@dataclass(frozen=True)
class Grant:
    """What a statement of IAM allows a caller of the API.

    Attributes:
        caller: whose work needs it.
        resources: as in :data:`ROUTES`; ``*`` is any text, also with slashes.
        text: what it allows, for docs/reference/security.md.
    """

    caller: str
    resources: tuple[str, ...]
    text: str


GRANTS = (
    Grant("readers", ("GET /*",), "reading everything, also results and reports: an asterisk matches slashes"),
    Grant(
        "readers of benchmarks",
        ("GET /benchmarks", "GET /benchmarks/*", "GET /fleets", "GET /fleets/*"),
        "reading runs, results, standing fleets and their nodes",
    ),
    Grant(
        "owners", ("PATCH /groups/*",), "setting the policy of any unit, or [of their own](#a-policy-for-an-owner) only"
    ),
    Grant("operators", ("PATCH /risks",), "exempting from [risks](../guides/risks.md), with a reason and an end"),
    Grant(
        "operators",
        ("PATCH /switch",),
        "halting, resuming, leashing and unleashing; the reaper, and schedules of benchmarks",
    ),
    Grant(
        "operators",
        ("POST /terminations", "POST /simianarmy/api/v1/chaos"),
        "terminating an instance on demand, also for clients of the original Chaos Monkey. `troop:on_demand` false "
        "refuses both to everybody. With `troop:under_load`, the first also decides who may start or schedule "
        "benchmarks that hit units",
    ),
    Grant(
        "authors of benchmarks",
        ("POST /benchmarks/estimate", "POST /fleets/estimate"),
        "the cost before a start; launches nothing. Without it, `troop bench run` and `troop fleet up` need `--key`",
    ),
    Grant(
        "authors of benchmarks",
        ("POST /benchmarks", "POST /benchmarks/artifacts"),
        "running the caller's code on instances that cost money",
    ),
    Grant(
        "authors of benchmarks",
        ("POST /benchmarks/schedules",),
        "running that code again and again, within a budget of the month",
    ),
    Grant(
        "authors of benchmarks",
        ("POST /benchmarks/*/report", "DELETE /benchmarks/*"),
        "making a report again; stopping a run, removing a schedule",
    ),
    Grant(
        "authors of benchmarks",
        ("POST /fleets", "PATCH /fleets/*", "DELETE /fleets/*"),
        "starting, resizing, extending and removing fleets; needs `POST /benchmarks/artifacts` where nodes install "
        "something",
    ),
    Grant(
        "authors of tasks",
        ("POST /fleets/*/tasks",),
        "giving tasks to fleets: the fleet's own code works on them, and the fleet may grow to its `max`",
    ),
)
"""All changes and all readings of benchmarks, by those who need them. Readings of chaos have the first resource."""

_BENCHMARK_PATHS = ("/benchmarks", "/fleets")
_REQUESTS_PER_SECOND = 50
_BURST = 100
_METHOD_THROTTLES = {"/switch/PATCH": (10, 20)} | dict.fromkeys(
    (
        "/benchmarks/POST",
        "/benchmarks/estimate/POST",
        "/benchmarks/schedules/POST",
        "/fleets/POST",
        "/fleets/estimate/POST",
    ),
    (2, 10),
)
"""Requests a second and burst of single methods. Callers that exhaust the stage's requests do not delay a halt. The
others read whole files, the most work of all: at the API's time-out of 29 seconds, all of them together would take 290
of the account's concurrent executions. Reserved concurrency would keep some for the switch, but Lambda refuses it in
accounts with few, because it keeps a minimum unreserved.
"""

_NOT_STARTED = {"message": "Lambda did not start the API's function: it is throttled, or cannot be invoked. Try again."}


class Api(Construct):
    """Every route of the API, signed by callers (AWS_IAM), answered by one function.

    Resources are listed without a greedy proxy, so that callers' IAM policies can distinguish them. There is no CORS:
    callers sign with AWS credentials, which do not belong in a web page.

    Attributes:
        rest_api: the API; its ``url`` includes the stage.
        access_logs: whether API Gateway logs each request.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, settings: DeploymentSettings, handler: lambda_.IFunction
    ) -> None:
        super().__init__(scope, construct_id)
        self.access_logs = settings.api_access_logs
        self.rest_api = apigateway.RestApi(
            self,
            "Rest",
            rest_api_name=cdk.Aws.STACK_NAME,  # for people: API Gateway allows several APIs of the same name
            description="Troop: terminations and their recovery, policies of units, the switch; runs of benchmarks",
            endpoint_configuration=apigateway.EndpointConfiguration(types=[apigateway.EndpointType.REGIONAL]),
            # API Gateway writes access logs only if the settings of the account and region name a role for it. Other
            # APIs share that setting, so it is set only on request, and stays when the deployment is removed.
            cloud_watch_role=settings.api_access_logs,
            deploy_options=apigateway.StageOptions(
                stage_name=STAGE,
                **(self._access_logs(settings) if settings.api_access_logs else {}),
                # The stage's metrics exist anyway; these would be five per route, each at the price of a custom
                # metric.
                metrics_enabled=False,
                tracing_enabled=True,
                throttling_rate_limit=_REQUESTS_PER_SECOND,
                throttling_burst_limit=_BURST,
                method_options={
                    method: apigateway.MethodDeploymentOptions(
                        metrics_enabled=False, throttling_rate_limit=rate, throttling_burst_limit=burst
                    )
                    for method, (rate, burst) in _METHOD_THROTTLES.items()
                    if settings.chaos.benchmarks or not method.startswith(_BENCHMARK_PATHS)
                },
            ),
            default_method_options=apigateway.MethodOptions(authorization_type=apigateway.AuthorizationType.IAM),
        )
        self.rest_api.node.try_remove_child("Endpoint")  # the stack has this output under a name of its own
        # Otherwise Lambda's throttling is 500 "Internal server error", like a defect of the function.
        self.rest_api.add_gateway_response(
            "NotStarted",
            type=apigateway.ResponseType.INTEGRATION_FAILURE,
            status_code="503",
            templates={"application/json": json.dumps(_NOT_STARTED)},
        )
        validator = self.rest_api.add_request_validator(
            "Validator", validate_request_body=True, validate_request_parameters=True
        )
        integration = apigateway.LambdaIntegration(handler, allow_test_invoke=False)
        for route in ROUTES:
            method, _, path = route.partition(" ")
            if path.startswith(_BENCHMARK_PATHS) and not settings.chaos.benchmarks:
                continue
            parameter = path.partition("{")[2].partition("}")[0]
            self.rest_api.root.resource_for_path(path).add_method(
                method,
                integration,
                request_validator=validator,
                request_parameters={f"method.request.path.{parameter}": True} if parameter else None,
            )

    def _access_logs(self, settings: DeploymentSettings) -> dict[str, Any]:
        context = apigateway.AccessLogField
        fields = {
            "requestId": context.context_request_id(),
            "requestTime": context.context_request_time(),
            "caller": context.context_identity_user_arn(),
            "ip": context.context_identity_source_ip(),
            "method": context.context_http_method(),
            "path": context.context_path(),
            "status": context.context_status(),
            "responseLength": context.context_response_length(),
            "latency": context.context_response_latency(),
            # A kind such as ACCESS_DENIED, because messages contain line ends and quotes.
            "error": context.context_error_response_type(),
            "integrationStatus": context.context_integration_status(),
            "traceId": context.context_xray_trace_id(),
        }
        return {
            "access_log_destination": apigateway.LogGroupLogDestination(make_log_group(self, "AccessLogs", settings)),
            "access_log_format": apigateway.AccessLogFormat.custom(_json_of(fields)),
        }


def _json_of(fields: dict[str, str]) -> str:
    """Returns one line of JSON with API Gateway's variables. API Gateway inserts the values without escaping."""
    return "{" + ",".join(f'"{name}":"{value}"' for name, value in fields.items()) + "}"
