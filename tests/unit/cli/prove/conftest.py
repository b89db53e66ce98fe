"""An account in moto, and the steps in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from moto import mock_aws

from cli.client.client import TroopClient
from cli.client.deployment import Deployment
from cli.commands import prove
from cli.prove.ledger import Ledger
from cli.prove.probes import Probes
from cli.prove.removers import removers
from cli.shared import aws
from tests.unit.cli.conftest import ARN

REGION = "eu-central-1"


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[boto3.Session]:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    session = boto3.Session("a", "b", region_name=REGION)
    monkeypatch.setattr(aws, "make_session", lambda *_: session)
    monkeypatch.setattr("cli.prove.permission_probes._PROPAGATION_SECONDS", 0)
    monkeypatch.setattr(prove, "_names", lambda *_: ["Shop-prod"])
    with mock_aws():
        yield session


@pytest.fixture
def probes(account: boto3.Session, client: TroopClient, tmp_path: Path) -> Probes:
    deployment = Deployment("Troop", REGION, "123456789012", {}, ARN)
    ledger = Ledger(tmp_path / "created.json", removers(account, client))
    return Probes(account, deployment, client, ledger, lambda _: {}, lambda: "f1", lambda _: None)
