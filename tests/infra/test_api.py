"""The API: who gets in, and what is written down about it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from aws_cdk import assertions

from infra import openapi
from infra.api import GRANTS, ROUTES
from tests.infra.cfn import resources_of, text
from troop.shared.api.requests import LARGEST_BODIES

Template = Mapping[str, Any]


def routes(template: Template) -> dict[str, dict[str, Any]]:
    """Methods by verb and path."""
    resources = resources_of(template, "AWS::ApiGateway::Resource")
    paths: dict[str, str] = {"<ApiRest.RootResourceId>": ""}
    while len(paths) <= len(resources):
        for name, resource in resources.items():
            parent = text(resource["Properties"]["ParentId"])
            if parent in paths:
                paths[f"<{name}>"] = f"{paths[parent]}/{resource['Properties']['PathPart']}"
    methods = [method["Properties"] for method in resources_of(template, "AWS::ApiGateway::Method").values()]
    return {f"{m['HttpMethod']} {paths[text(m['ResourceId'])]}": m for m in methods}


def test_routes_are_signed_and_those_that_the_function_answers(template: Template) -> None:
    described = openapi.document()["paths"]
    assert set(routes(template)) == {f"{m.upper()} {path}" for path, methods in described.items() for m in methods}
    assert {method["AuthorizationType"] for method in routes(template).values()} == {"AWS_IAM"}


def test_the_description_is_the_committed_one() -> None:
    assert openapi.PATH.read_text(encoding="utf-8") == openapi.text(), "run: make openapi"


def test_everything_in_the_description_is_described() -> None:
    document = openapi.document()
    assert "422" not in json.dumps(document)
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation["description"], (method, path)
            assert operation["security"], (method, path)
            assert "403" in operation["responses"], (method, path)
            assert {"200", "202", "302"} & set(operation["responses"]), (method, path)
    references = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(document)))
    assert references == set(document["components"]["schemas"])


def test_one_function_answers(template: Template) -> None:
    for method in routes(template).values():
        assert method["Integration"]["Type"] == "AWS_PROXY"
        assert "<Api.Arn>" in text(method["Integration"]["Uri"])


def test_requests_are_validated(template: Template) -> None:
    (validator,) = resources_of(template, "AWS::ApiGateway::RequestValidator")
    assert {text(method["RequestValidatorId"]) for method in routes(template).values()} == {f"<{validator}>"}
    for route, method in routes(template).items():
        in_path = {f"method.request.path.{name}": True for name in re.findall(r"\{(\w+)\}", route)}
        assert method.get("RequestParameters", {}) == in_path, route


def test_no_web_page_may_call_it(template: Template) -> None:
    assert not [route for route in routes(template) if route.startswith("OPTIONS")]
    assert "Access-Control" not in json.dumps(template)


def limits(template: Template) -> dict[str, tuple[int, int]]:
    """Requests a second and burst, by route."""
    (stage,) = resources_of(template, "AWS::ApiGateway::Stage").values()
    return {
        # CloudFormation takes a path with ~1 for each slash but the first.
        f"{s['HttpMethod']} {s['ResourcePath'].removeprefix('/').replace('~1', '/')}": (
            s["ThrottlingRateLimit"],
            s["ThrottlingBurstLimit"],
        )
        for s in stage["Properties"]["MethodSettings"]
    }


def test_requests_with_files_leave_most_of_the_accounts_functions_to_others(template: Template) -> None:
    """At the time-out of each, they take a third of the executions that an account has by default."""
    posts = {route: rate for route, (rate, _) in limits(template).items() if route.startswith("POST ")}
    assert set(posts) == {f"POST {path}" for path in LARGEST_BODIES}
    assert sum(posts.values()) * 29 < 1000 / 3


def test_the_stage_is_throttled_and_traced(template: Template) -> None:
    (stage,) = resources_of(template, "AWS::ApiGateway::Stage").values()
    properties = stage["Properties"]
    others = {route: limit for route, limit in limits(template).items() if not route.startswith("POST ")}
    assert others == {"* *": (50, 100), "PATCH /switch": (10, 20)}
    metrics = {s["MetricsEnabled"] for s in properties["MethodSettings"]}
    assert metrics == {False}, "metrics of single routes cost as much as all else together"
    assert properties["TracingEnabled"] is True


def test_answer_for_a_function_that_lambda_does_not_start_differs_from_a_failed_one(template: Template) -> None:
    (response,) = resources_of(template, "AWS::ApiGateway::GatewayResponse").values()
    properties = response["Properties"]
    assert (properties["ResponseType"], properties["StatusCode"]) == ("INTEGRATION_FAILURE", "503")
    body = json.loads(properties["ResponseTemplates"]["application/json"])
    assert "statusCode" not in body, "the commands tell the function's own answers by it"
    assert "Lambda did not start" in body["message"]


def test_the_access_log_is_json_and_names_the_caller(blue: Template) -> None:
    (stage,) = resources_of(blue, "AWS::ApiGateway::Stage").values()
    setting = stage["Properties"]["AccessLogSetting"]
    fields = json.loads(setting["Format"])
    assert {"requestId", "caller", "status", "method", "path", "error", "latency"} <= set(fields)
    assert fields["caller"] == "$context.identity.userArn"
    assert "<ApiAccessLogs>" in text(setting["DestinationArn"])


def test_api_settings_of_the_account_are_untouched_by_default(template: Template) -> None:
    assert not resources_of(template, "AWS::ApiGateway::Account")
    (stage,) = resources_of(template, "AWS::ApiGateway::Stage").values()
    assert "AccessLogSetting" not in stage["Properties"]


def test_the_regions_role_for_access_logs_outlives_a_deployment(blue: Template) -> None:
    synthesised = assertions.Template.from_json(dict(blue))
    synthesised.has_resource("AWS::ApiGateway::Account", {"DeletionPolicy": "Retain"})
    role = resources_of(blue, "AWS::IAM::Role")["ApiRestCloudWatchRole"]
    assert role["DeletionPolicy"] == "Retain"
    (stage,) = resources_of(blue, "AWS::ApiGateway::Stage").values()
    assert [name for name in stage["DependsOn"] if name.startswith("ApiRestAccount")]


def test_grants_of_callers_leave_no_route_out() -> None:
    """But those that only show chaos, for which there is one resource."""
    resources = {one for grant in GRANTS for one in grant.resources} - {"GET /*"}
    matching = {
        resource: {route for route in ROUTES if re.fullmatch(re.escape(resource).replace(r"\*", ".+"), route)}
        for resource in resources
    }
    benchmark_routes = {route for route in ROUTES if route.split("/")[1] in ("benchmarks", "fleets")}
    assert set().union(*matching.values()) == benchmark_routes | {one for one in ROUTES if not one.startswith("GET ")}
    assert [resource for resource, its in matching.items() if not its] == []
