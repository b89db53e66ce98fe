"""What the client of benchmarks makes of the API's answers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from cli.client.api import Answer
from cli.client.bench_client import BenchClient
from cli.client.calls import Calls
from cli.shared.errors import CliError
from troop.bench.records.line import Figures, Line, Values
from troop.shared.errors import ErrorCode


class Api:
    """Answers by the cursor of a request."""

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self.answers, self.queries = answers, list[Mapping[str, str]]()

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Answer:
        assert (method, path, body) == ("GET", "benchmarks/history", None)
        assert query
        self.queries.append(query)
        return self.answers[query.get("cursor", "")]


def client(answers: Mapping[str, Answer]) -> tuple[BenchClient, Api]:
    api = Api(answers)
    return BenchClient(Calls(api, "arn", "Troop", sleep=lambda _: None)), api


def document(night: int) -> dict[str, Any]:
    reads = {"variant": "", "phase": "measure", "point": "", "role": "drivers", "operation": "read"}
    reads["values"] = [[100 + night, None, 1, 2.5, 0.1, 0]]  # type: ignore[assignment]
    about = {"run": f"run-{night}", "name": "reads", "size": None, "status": "SUCCEEDED", "troop": "1.2"}
    return {**about, "at": f"2026-11-{night:02}T17:05:00.000Z", "versions": {}, "cost": 0.25, "figures": [reads]}


def line(night: int) -> Line:
    values = Values(100.0 + night, None, 1.0, 2.5, 0.1, 0.0)
    reads = Figures("", "measure", "", "drivers", "read", (values,))
    at = datetime(2026, 11, night, 17, 5, tzinfo=UTC)
    return Line(f"run-{night}", "reads", at, None, "SUCCEEDED", "1.2", cost=Decimal("0.25"), figures=(reads,))


def test_history_follows_pages_until_it_has_enough() -> None:
    pages = {
        "": Answer(200, {"lines": [document(5), document(4)], "cursor": "more"}),
        "more": Answer(200, {"lines": [document(3)], "cursor": "most"}),
    }
    benchmarks, api = client(pages)
    assert benchmarks.history("reads", 3) == [line(5), line(4), line(3)]
    assert api.queries == [
        {"name": "reads", "limit": "3"},
        {"name": "reads", "limit": "1", "cursor": "more"},
    ]


def test_deployment_of_an_earlier_version_asks_for_an_upgrade() -> None:
    """It takes the path for that of a run."""
    body = {"statusCode": 404, "message": "there is no run 'history'", "code": ErrorCode.NO_SUCH_RUN}
    with pytest.raises(CliError, match="has no history: upgrade the deployment"):
        client({"": Answer(404, body)})[0].history("reads", 3)
