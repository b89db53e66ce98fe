"""One view of two accounts side by side, each with ports, keys and IAM of its own, as people see it."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cli.shared.errors import Exit
from local import profiles
from local.launcher import LocalAccount
from local.project import ROOT
from tests.e2e.conftest import BUSY, Deployment, eventually

NORTH, SOUTH = "Fleets", "Commanded"
"""The deployments; their profiles are called north and south."""

READ = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Action": "cloudformation:DescribeStacks", "Resource": "*"},
        {"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": "arn:aws:execute-api:*:*:*/*/GET/*"},
    ],
}


class View:
    """`troop --all` with a file of both deployments, in an environment that knows nothing of either account."""

    def __init__(self, folder: Path, north: LocalAccount, south: LocalAccount) -> None:
        self.folder = folder
        self.south = south
        self.config = folder / "config"
        profiles.add(self.config, "north", north.exports)
        profiles.add(self.config, "south", south.exports)
        entries = [(NORTH, "north"), (SOUTH, "south")]
        lines = [f"- {{name: {name}, region: us-east-1, profile: {profile}}}\n" for name, profile in entries]
        (folder / "deployments.yaml").write_text("".join(["deployments:\n", *lines]))

    def troop(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(ROOT / "scripts" / "troop"), *words],
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder), "AWS_CONFIG_FILE": str(self.config)},
            capture_output=True,
            text=True,
            timeout=BUSY,
            check=False,
        )

    def all(self, *words: str, code: int = Exit.OK) -> dict[str, dict[str, Any]]:
        """The entries of ``troop --all`` by deployment."""
        done = self.troop("--all", *words, "--json")
        assert done.returncode == code, (words, done)
        document = json.loads(done.stdout)
        return {entry["deployment"]: entry for entry in document["deployments"]}

    @contextmanager
    def reader_of_the_south(self) -> Iterator[None]:
        """Gives the profile of the south the keys of a user of that account, who may change nothing."""
        iam = self.south.client("iam")
        iam.create_user(UserName="reader")
        iam.put_user_policy(UserName="reader", PolicyName="read", PolicyDocument=json.dumps(READ))
        key = iam.create_access_key(UserName="reader")["AccessKey"]
        own = {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}
        profiles.add(self.config, "south", self.south.exports | own)
        yield
        profiles.add(self.config, "south", self.south.exports)


def outcomes(entries: dict[str, dict[str, Any]]) -> dict[str, str | None]:
    return {name: entry["answer"] and entry["answer"]["outcome"] for name, entry in entries.items()}


@pytest.fixture(scope="module")
def view(lasting_bench: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[View]:
    with LocalAccount("south", processes=False) as south:
        Deployment(south, SOUTH)
        yield View(tmp_path_factory.mktemp("view"), lasting_bench.account, south)


def test_a_view_of_two_accounts_of_which_one_dies(view: View) -> None:
    # The first answers of new functions may come after the command's limit of time, where much else is going on.
    eventually(lambda: view.troop("--all", "status").returncode == Exit.OK or None, BUSY)
    status = view.all("status")
    assert {name: entry["answer"]["switch"]["halted"] for name, entry in status.items()} == {NORTH: False, SOUTH: False}

    # Who may only read one of them halts the other.
    with view.reader_of_the_south():
        entries = view.all("halt", code=Exit.UNREACHABLE)
        assert outcomes(entries) == {NORTH: "halted", SOUTH: None}
        assert "permission denied" in entries[SOUTH]["error"]
        assert outcomes(view.all("resume", "--yes")) == {NORTH: "resumed", SOUTH: "not halted"}

    # A halt by a person stays as it is, through a halt and a resume of all.
    storm = view.troop("--profile", "south", "-d", SOUTH, "halt", "--reason", "storm in the south")
    assert storm.returncode == Exit.OK, storm
    entries = view.all("halt", "--reason", "incident 4711", code=Exit.FAILED)
    assert outcomes(entries) == {NORTH: "halted", SOUTH: "halted by another"}
    status = view.all("status")
    assert {name: entry["answer"]["switch"]["reason"] for name, entry in status.items()} == {
        NORTH: "incident 4711",
        SOUTH: "storm in the south",
    }
    shown = view.troop("--all", "resume", "--yes")
    assert shown.returncode == Exit.OK, shown
    assert re.search(rf"{NORTH} +resumed\n", shown.stdout)
    assert re.search(rf"{SOUTH} +still halted \(\S+:root, .+: storm in the south\)", shown.stdout)

    view.south.stop()
    entries = view.all("halt", "--reason", "incident 4712", code=Exit.UNREACHABLE)
    assert outcomes(entries) == {NORTH: "halted", SOUTH: None}
    assert "cannot be reached" in entries[SOUTH]["error"]
    assert outcomes(view.all("resume", "--yes", code=Exit.UNREACHABLE)) == {NORTH: "resumed", SOUTH: None}
