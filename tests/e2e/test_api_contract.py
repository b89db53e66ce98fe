"""The deployed API holds to its description, whatever it is asked: no 5xx, and answers as described."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest
import requests
import schemathesis
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from requests.auth import AuthBase
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from infra import ROOT
from infra.api import ROUTES
from local.launcher import LocalAccount
from tests.e2e.benches import EXHAUSTIVE
from tests.e2e.conftest import Deployment
from troop.chaos.events import Status

KNOWN = ("contract-web", "contract-db")
LONGEST_ADDRESS = 8000
"""What is longer is cut off by servers before anything of ours sees it; API Gateway takes 10,240 bytes."""

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
BOUNDED = settings(
    max_examples=100 if EXHAUSTIVE else 20,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
"""Few examples, the same ones each time: a request takes tens of milliseconds, and the suite is run often. More of them
with ``TROOP_EXHAUSTIVE``, as ``make test-all`` has it."""

DESCRIPTION = schemathesis.openapi.from_dict(json.loads((ROOT / "docs" / "reference" / "openapi.json").read_text()))


RUN = "20261120-120000-00000001"

EXPECTED = {
    "PATCH /risks": {404},
    "POST /terminations": {409, 410},  # halted, if the switch was drawn so before; nothing is left to terminate
    "POST /simianarmy/api/v1/chaos": {400},
    "POST /benchmarks": {400},
    "POST /benchmarks/estimate": {400},
    "POST /benchmarks/schedules": {400},
    "DELETE /benchmarks/schedules/{name}": {404},
    "GET /benchmarks/{run}": {404},
    "DELETE /benchmarks/{run}": {404},
    "GET /benchmarks/{run}/live": {404},
    **{f"{method} /benchmarks/{{run}}/report": {404} for method in ("GET", "POST")},
    **{f"POST {path}": {400} for path in ("/fleets", "/fleets/estimate")},
    **{f"{method} /fleets/{{fleet}}": {404} for method in ("GET", "PATCH", "DELETE")},
    "POST /fleets/{fleet}/tasks": {404},
    "GET /fleets/{fleet}/results": {404},
}
"""Where nothing can be terminated, and nothing is run, refusals are all there is."""


class Signed(AuthBase):
    """Signs as the AWS SDKs do, what the test has made of the request."""

    def __init__(self, deployment: Deployment) -> None:
        self._session = deployment.account.session()

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        assert request.method
        assert request.url
        unsigned = AWSRequest(request.method, request.url, data=request.body or b"")
        credentials = self._session.get_credentials()
        assert credentials
        SigV4Auth(credentials, "execute-api", self._session.region_name).add_auth(unsigned)
        request.headers.update(dict(unsigned.headers))
        return request


@pytest.fixture(scope="module")
def deployment(account: LocalAccount) -> Iterator[Deployment]:
    """Two groups without instances, so that nothing can be terminated, a decision and an event of each."""
    deployment = Deployment(account, "Contract")
    for unit in KNOWN:
        deployment.groups.create(unit, 0)
        deployment.put_event(unit, datetime.now(UTC), Status.RECOVERED)
    assert deployment.tick()["status"] == "SUCCEEDED"
    yield deployment
    for unit in KNOWN:
        deployment.groups.delete(unit)


@pytest.mark.parametrize("route", ROUTES)
def test_no_server_error_and_answers_as_described(deployment: Deployment, route: str) -> None:
    method, _, path = route.partition(" ")
    url, trusted = deployment.outputs["ApiUrl"].rstrip("/"), deployment.account.exports["AWS_CA_BUNDLE"]
    session = requests.Session()
    session.auth = Signed(deployment)
    known = {
        "unit": st.sampled_from(KNOWN),
        "id": st.sampled_from([_id(unit) for unit in KNOWN]),
        "run": st.just(RUN),
        "fleet": st.just(RUN),
        "name": st.just("nightly"),
    }
    seen = set()

    operation = DESCRIPTION[path][method]
    cases = operation.as_strategy()
    list_paths = ("/events", "/decisions", "/groups", "/policies")
    if "{" in path or method == "PATCH" or path in list_paths:  # what can be asked wrongly
        cases |= operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)

    @BOUNDED
    @given(case=cases, data=st.data())
    def ask(case: Any, data: st.DataObject) -> None:
        # Names that are drawn from nowhere are seldom those of anything: half of the time, take one that is.
        for name in case.path_parameters:
            if data.draw(st.booleans()):
                case.path_parameters[name] = data.draw(known[name])
        if path == "/terminations" and isinstance(case.body, dict) and data.draw(st.booleans()):
            case.body["group"] = data.draw(st.sampled_from(KNOWN))
        assume(len(quote(f"{case.path_parameters}{case.query}")) < LONGEST_ADDRESS)
        # Any client takes these out of an address, and asks for the list instead.
        assume(not {"", ".", ".."} & set(map(str, case.path_parameters.values())))
        answer = case.call_and_validate(base_url=url, session=session, verify=trusted, checks=CHECKS)
        seen.add(answer.status_code)

    ask()
    assert EXPECTED.get(route, {200}) & seen, seen


def _id(unit: str) -> str:
    return f"{datetime.now(UTC).date()}~{unit}"
