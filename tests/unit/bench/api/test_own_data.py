"""A benchmark that creates objects to measure with: only where the operator allows it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.account.bench import BUCKET, FILE, Half, post, problems
from troop.bench.definition import names

ASKING = {**FILE, "own_data": True}


def test_by_default_it_is_refused_with_what_to_do(half: Half) -> None:
    refused = problems(definition=ASKING)["body.definition.own_data"]
    assert refused.startswith("is true: must be false: the deployment's setting troop:own_data is false")
    assert "make deploy KEEP=1 ARGS=\"-c 'troop:own_data=true'\"" in refused


@pytest.mark.parametrize("settings", [{"own_data": True}], indirect=True)
@pytest.mark.parametrize("own_data", [True, False])
def test_where_it_is_allowed_nodes_know_whether_the_file_asks(half: Half, own_data: bool) -> None:
    status, run = post(definition={**FILE, "own_data": own_data})
    assert status == 202, run
    body: Any = half.s3.get_object(Bucket=BUCKET, Key=names.definition_key(run["run"]))["Body"]
    assert json.loads(body.read())["own_data"] is own_data
