"""The model's DynamoDB is held against AWS's own implementation, DynamoDB Local."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError

from local import tools
from tests.model.replay import CONDITIONS, SEEDS, agree_on, create_tables, replay
from tests.opinions.node import HERE
from tests.patience import PATIENCE

pytestmark = pytest.mark.second_opinion

JARS = tools.TOOLS / "dynamodb-local"
MAIN = "software.amazon.dynamodb.services.local.main.ServerRunner"
MORE_SEEDS = range(100, 130)


@pytest.fixture(scope="session")
def jars() -> Path:
    """DynamoDB Local from Maven Central; the second time it is there."""
    if not (JARS / "complete").exists():
        tools.install(("java", "mvn"), print)
        copy = ["dependency:copy-dependencies", f"-DoutputDirectory={JARS}"]
        subprocess.run(["mvn", "--quiet", "--batch-mode", "-f", str(HERE / "pom.xml"), *copy], check=True)
        (JARS / "complete").touch()
    return JARS


@pytest.fixture(scope="module")
def client(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # It cannot be held to 127.0.0.1: it lives for the seconds of these tests, in memory, with what the model invents.
    options = ["-Xmx256m", f"-Djava.library.path={jars}", "-cp", f"{jars}/*", MAIN]
    options += ["-inMemory", "-sharedDb", "-disableTelemetry", "-port", str(port)]
    log = tmp_path_factory.mktemp("dynamodb") / "log"
    with log.open("wb") as output:
        server = subprocess.Popen(["java", *options], stdout=output, stderr=output, env={**os.environ, "TZ": "UTC"})
    try:
        yield _reached(port, server, log)
    finally:
        server.terminate()
        server.wait(PATIENCE)


def _reached(port: int, server: subprocess.Popen[bytes], log: Path) -> Any:
    client = boto3.client(
        "dynamodb",
        endpoint_url=f"http://127.0.0.1:{port}",
        region_name="eu-central-1",
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
        config=Config(retries={"total_max_attempts": 1}),
    )
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and server.poll() is None:
        try:
            client.list_tables()
        except BotoCoreError:
            time.sleep(0.2)
        else:
            return client
    raise AssertionError(log.read_text())


@pytest.fixture(autouse=True)
def tables(client: Any) -> None:
    for name in client.list_tables()["TableNames"]:
        client.delete_table(TableName=name)
    create_tables(client)


@pytest.mark.parametrize("seed", [*SEEDS, *MORE_SEEDS])
def test_requests_of_a_history_are_answered_alike(client: Any, seed: int) -> None:
    assert replay(client, seed)


@pytest.mark.parametrize("text", CONDITIONS)
def test_conditions_mean_the_same(client: Any, text: str) -> None:
    agree_on(client, text)
