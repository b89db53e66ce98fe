"""TLS: the agent and the readers trust what the AWS CLI trusts, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serving import Quiet
from tests.unit.agent.s3_scripts import OneReader, module
from tests.unit.tls import certificate, serving
from troop.measure.s3.addresses import address_of
from troop.measure.s3.credentials import Credentials, CredentialStore
from troop.measure.s3.web import ERRORS, Web


class Ranges(Quiet):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.answer(206, b"bytes")


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return certificate(tmp_path)


@pytest.fixture
def url(bundle: Path) -> Iterator[str]:
    with serving(Ranges, bundle) as address:
        yield f"{address}/a?b"


def test_the_agent_trusts_the_clis_bundle(url: str, bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(bundle))
    assert Web().ask(url).body == b"bytes"


def test_the_agent_trusts_nobody_else(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    with pytest.raises(ERRORS, match="certificate verify failed"):
        Web().ask(url)


def reads(url: str) -> int:
    store = CredentialStore(lambda: Credentials("AKIA", "secret"))
    one = OneReader(address_of("data", "us-west-2", url), store)
    try:
        return one.read(0, 5)
    finally:
        one.close()


def test_readers_do_the_same(url: str, bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = url.removesuffix("/a?b")
    monkeypatch.setenv("AWS_CA_BUNDLE", str(bundle))
    assert reads(server) == 5
    monkeypatch.delenv("AWS_CA_BUNDLE")
    with pytest.raises(module("ranges").ReadError, match=r"^tls$"):
        reads(server)
