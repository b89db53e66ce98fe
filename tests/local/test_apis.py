"""API Gateway: who may call a method, and what a caller hears when its function is throttled."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
import requests
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest

from local.launcher import LocalAccount

from .helpers import World, allow, unique

_HANDLER = """
def handler(event, context):
    return {"statusCode": 200, "body": event["requestContext"]["identity"]["userArn"]}
"""


@dataclass(frozen=True)
class Api:
    """A REST API whose only method, GET /, is authorised by IAM and answers with its caller's ARN."""

    account: LocalAccount
    url: str
    function: str

    def get(self, session: boto3.Session | None = None) -> requests.Response:
        """The answer to a request that `session` has signed; unsigned without one."""
        headers: dict[str, str] = {}
        if session:
            credentials = session.get_credentials()
            assert credentials is not None
            request = AWSRequest("GET", self.url)
            SigV4Auth(credentials, "execute-api", "us-east-1").add_auth(request)
            headers = dict(request.headers.items())
        return requests.get(self.url, headers=headers, verify=self.account.exports["AWS_CA_BUNDLE"], timeout=60)


@pytest.fixture(scope="module")
def api(world: World) -> Api:
    client, function = world.account.client("apigateway"), world.function(_HANDLER)
    api = client.create_rest_api(name=unique("api"))["id"]
    (root,) = client.get_resources(restApiId=api)["items"]
    method: dict[str, Any] = {"restApiId": api, "resourceId": root["id"], "httpMethod": "GET"}
    client.put_method(**method, authorizationType="AWS_IAM")
    invoke = f"arn:aws:apigateway:us-east-1:lambda:path/2015-03-31/functions/{function}/invocations"
    client.put_integration(**method, type="AWS_PROXY", integrationHttpMethod="POST", uri=invoke)
    client.create_deployment(restApiId=api, stageName="v1")
    endpoint = world.account.exports["AWS_ENDPOINT_URL"]
    return Api(world.account, f"{endpoint}/restapis/{api}/v1/_user_request_/", function)


def test_a_method_knows_its_caller_by_a_verified_signature(world: World, api: Api) -> None:
    answer = api.get(world.account.session())
    assert (answer.status_code, answer.text) == (200, "arn:aws:iam::000000000000:root")
    own = world.account.exports
    for key_id, key in (
        ("test", "test"),
        ("000000000000", own["AWS_SECRET_ACCESS_KEY"]),
        (own["AWS_ACCESS_KEY_ID"], "guess"),
    ):
        answer = api.get(world.account.session(aws_access_key_id=key_id, aws_secret_access_key=key))
        assert (answer.status_code, list(answer.json())) == (403, ["message"])
    answer = api.get()
    assert (answer.status_code, answer.json()) == (403, {"message": "Missing Authentication Token"})


def test_a_role_needs_leave(world: World, api: Api) -> None:
    assert api.get(world.as_role(world.role())).status_code == 403
    assert api.get(world.as_role(world.role(allow("execute-api:Invoke")))).status_code == 200


def test_a_throttled_function_is_a_server_error_to_the_apis_caller(world: World, api: Api) -> None:
    """AWS says nothing of Lambda's 429 to a caller of the API."""
    world.functions.put_function_concurrency(FunctionName=api.function, ReservedConcurrentExecutions=0)
    try:
        with pytest.raises(world.functions.exceptions.TooManyRequestsException):
            world.functions.invoke(FunctionName=api.function, Payload=json.dumps({}))
        answer = api.get(world.account.session())
    finally:
        world.functions.delete_function_concurrency(FunctionName=api.function)
    assert (answer.status_code, answer.json()) == (500, {"message": "Internal server error"})
    assert api.get(world.account.session()).status_code == 200
