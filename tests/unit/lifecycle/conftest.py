"""Deploying and removing, in an account of moto, or in one that the tests play."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Iterator

import boto3
import pytest
from moto import mock_aws

from cli.shared import aws
from lifecycle import adoption, console, deploy, retained, takeover
from tests.unit.lifecycle.world import SESSION, Run, World


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[boto3.Session]:
    for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    with mock_aws():
        yield boto3.Session(aws_access_key_id="a", aws_secret_access_key="b", region_name="eu-west-1")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()
    monkeypatch.setattr(aws, "make_session", lambda *_: SESSION)
    monkeypatch.setattr(aws, "client", world.client)
    monkeypatch.setattr(deploy, "cdk", world.cdk)
    monkeypatch.setattr(
        deploy, "find_stack", lambda *_: world.status and {"StackStatus": world.status, "StackId": "arn:1"}
    )
    monkeypatch.setattr(deploy, "resources_of", lambda *_: world.resources)
    monkeypatch.setattr(retained, "find_retained", lambda *_: world.retained)
    monkeypatch.setattr(adoption, "proven", lambda _session, _name, tables: tables)
    monkeypatch.setattr(retained, "imports", lambda _, chosen: {f"Data{part}": t for part, t in chosen.items()})
    monkeypatch.setattr(takeover, "adopt", world.adopt)
    monkeypatch.setattr(takeover, "adopt_into", world.adopt_into)
    monkeypatch.setattr(takeover, "clear_away", world.clear_away)
    monkeypatch.setattr(console, "interactive", lambda: world.typed is not None)
    return world


@pytest.fixture
def run(world: World, monkeypatch: pytest.MonkeyPatch) -> Run:
    def run(
        *settings: str,
        typed: str | None = None,
        yes: bool = False,
        adopt: str = "ask",
        name: str = "",
        stage: str | None = None,
        repair: bool = False,
        unleashed: bool = False,
        keep: bool = False,
        reset: bool = False,
    ) -> None:
        world.typed = typed
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed or ""))
        options = argparse.Namespace(
            deployment=name,
            stage=stage,
            yes=yes,
            adopt=adopt,
            repair=repair,
            unleashed=unleashed,
            keep=keep,
            reset=reset,
            context=list(settings),
        )
        deploy.deploy(options)

    return run
