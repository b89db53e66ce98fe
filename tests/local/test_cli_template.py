"""The CLI on nodes, which is a copy of a process."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from local.account.network import problem
from local.account.nodes import install_cli
from local.project import NODE_AWS
from tests.patience import PATIENCE

PRESIGN = "s3", "presign", "s3://bucket/key", "--endpoint-url", "https://s3.example", "--expires-in", "60"


@dataclass
class Node:
    """Runs the CLI as a node does."""

    home: Path
    start_template: Callable[[], object]
    environment: dict[str, str] = field(default_factory=dict)

    def run(self, *words: str, cli: Path | None = None, before: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        line = [*before, str(cli or self.home / "aws"), *words]
        return subprocess.run(
            line, cwd=self.home, env=self.environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )


@contextmanager
def booted(home: Path, cli: str) -> Iterator[Node]:
    """A node that can use the template until the end of the block."""
    node = Node(home, install_cli(home, NODE_AWS.resolve().with_name(cli)))
    node.environment = {
        "PATH": os.defpath,
        "HOME": str(home),
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_CONFIG_FILE": "./config",
        "AWS_METADATA_SERVICE_NUM_ATTEMPTS": "1",
        "AWS_MAX_ATTEMPTS": "1",
    }
    process = node.start_template()
    assert isinstance(process, subprocess.Popen)
    assert process.stdin is not None
    yield node
    process.stdin.close()  # as at the end of the account
    assert process.wait(PATIENCE) == 0


@pytest.fixture(scope="module", params=["absent"])
def node(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Node]:
    """A node whose CLI itself is absent, so that only a copy can answer."""
    with booted(tmp_path_factory.mktemp("n"), request.param) as node:
        yield node


@pytest.mark.parametrize("node", [NODE_AWS.name], indirect=True)  # messages contain the name
@pytest.mark.parametrize("words", [("--version",), ("s3", "presign"), ("s3", "cp", "missing", "s3://bucket/key")])
def test_output_and_exit_code_equal_those_of_the_cli(node: Node, words: tuple[str, ...]) -> None:
    ours, theirs = node.run(*words), node.run(*words, cli=NODE_AWS)
    assert (ours.returncode, ours.stdout, ours.stderr) == (theirs.returncode, theirs.stdout, theirs.stderr)


def test_command_has_the_environment_and_directory_of_its_caller(node: Node) -> None:
    assert node.run("configure", "set", "region", "eu-west-3").returncode == 0
    assert "eu-west-3" in (node.home / "config").read_text()
    assert node.run("configure", "get", "region").stdout == "eu-west-3\n"
    node.environment["AWS_ACCESS_KEY_ID"] = "another"
    assert "another" in node.run(*PRESIGN).stdout


@pytest.mark.skipif(problem() is not None, reason="needs network namespaces")
def test_command_has_the_network_of_its_caller(node: Node) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        done = node.run("s3", "ls", "--endpoint-url", address, before=("unshare", "--net"))
    assert "Could not connect to the endpoint URL" in done.stderr


def test_command_ends_with_its_caller(node: Node) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE)
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        line = [str(node.home / "aws"), "s3", "ls", "--endpoint-url", address]
        caller = subprocess.Popen(line, cwd=node.home, env=node.environment)
        waiting, _ = server.accept()
        with waiting:
            waiting.settimeout(PATIENCE)
            caller.kill()
            caller.wait(PATIENCE)
            while waiting.recv(1 << 16):
                pass


def test_the_cli_itself_runs_when_the_template_has_ended(tmp_path_factory: pytest.TempPathFactory) -> None:
    with booted(tmp_path_factory.mktemp("n"), NODE_AWS.name) as node:
        pass
    assert node.run("--version").stdout.startswith("aws-cli/")


def test_the_cli_itself_runs_where_a_path_is_too_long_for_a_socket(tmp_path: Path) -> None:
    home = tmp_path / ("long" * 40)
    home.mkdir()
    node = Node(home, install_cli(home, NODE_AWS))
    node.start_template()
    assert node.run("--version").stdout.startswith("aws-cli/")
