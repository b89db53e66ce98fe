"""User data, agent and a benchmark in a clean root: Python 3.9, the standard library, and nothing of ours installed.

What is not real in it: the AWS CLI (Debian's is version 1), S3, and the instance metadata service.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra import ROOT
from tests.patience import PATIENCE
from tests.unit.agent import clean_root
from tests.unit.agent.fake_account import FakeAccount
from tests.unit.agent.node import BOOT, BUCKET, ID, RUN, Node, key
from troop.bench import names
from troop.bench.user_data import user_data
from troop.measure import summary as summaries
from troop.measure.merge import Merger

pytestmark = [
    pytest.mark.clean_root,
    pytest.mark.skipif(clean_root.missing() is not None, reason=f"no clean root: {clean_root.missing()}"),
]

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""All that cloud-init leaves of an environment; not even HOME."""
SCRIPTS = {path.name: path.read_text() for path in (ROOT / "benchmarks/s3-range-read").glob("*.py")}


@pytest.fixture
def root() -> Iterator[Path]:
    """With a stand-in for the AWS CLI, and without a trace of another node."""
    root = clean_root.make()
    shutil.rmtree(root / "var/lib/troop", ignore_errors=True)
    aws, script = root / "usr/bin/aws", root / "root/user-data"
    shutil.copyfile(Path(__file__).parent / "fake_aws.py", aws)
    aws.chmod(0o755)
    yield root
    for path in (aws, script):
        path.unlink(missing_ok=True)
    shutil.rmtree(root / "var/lib/troop", ignore_errors=True)


def inside(root: Path, *line: str) -> str:
    command = clean_root.enter(root, list(line), {"PATH": PATH})
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_node_boots_and_measures_with_nothing_of_ours_installed(
    root: Path, account: FakeAccount, node: Node, tmp_path: Path
) -> None:
    assert inside(root, "python3", "-c", "import sys; print(sys.version_info[:2])") == "(3, 9)\n"
    packages = (
        "import pkgutil, sys; print([m.name for m in pkgutil.iter_modules([p for p in sys.path if 'dist-pa' in p])])"
    )
    assert inside(root, "python3", "-c", packages) == "[]\n"

    node.benchmark(
        {"name": "prepare"},
        {"name": "measure"},
        files=SCRIPTS,
        parameters={"bucket": "data", "min_bytes": 1024, "max_bytes": 10240, "threads": 4},
    )
    account.put("data/one", bytes(100_000))
    (root / "root/user-data").write_text(
        user_data({**BOOT, "agent_sha256": node.sha256, "expires_at": time.time() + 3600})
    )
    environment = {
        "PATH": PATH,
        "AWS_ENDPOINT_URL": account.url,
        "AWS_EC2_METADATA_SERVICE_ENDPOINT": account.metadata_of(ID),
    }
    console = tmp_path / "console.log"
    with console.open("wb") as file:
        command = clean_root.enter(root, ["bash", "/root/user-data"], environment)
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, cwd="/")
    try:
        registered = node.registration()
        assert "error" not in registered, registered
        node.roster(rank=0)
        node.barrier("prepare", script="prepare.py")
        prepared = summaries.parse(node.summary("prepare"))
        node.barrier(
            "measure",
            script="read.py",
            warm_up_seconds=2,
            measured_seconds=5,
        )
        measured = summaries.parse(node.summary("measure"))
        assert process.wait(PATIENCE) == 0, console.read_text()
    finally:
        process.kill()
        process.wait()

    assert registered["python"].startswith("3.9.")
    assert (prepared.outcome, prepared.reason) == ("ok", None)
    assert (measured.outcome, measured.reason) == ("ok", None)
    assert measured.samples is not None
    assert len([value for value in measured.samples.series["cpu_user"] if value is not None]) >= 2
    merger = Merger()
    merger.add(measured)
    (row,) = merger.table()
    assert row["operation"] == "read"
    assert row["count"] > 100
    assert row["errors"] == {}
    assert 0 < row["p50_ms"] <= row["p99_ms"] <= row["max_ms"]
    written = {name for name in account.objects if name.startswith(key(""))}
    below = {name.removeprefix(key("")) for name in written}
    assert {f"output/prepare/{ID}.log.gz", f"output/measure/{ID}.log.gz", f"nodes/{ID}.json"} <= below
    assert (root / "var/lib/troop/agent.pyz").exists(), "the default home of a node"
    assert f"{BUCKET}/{names.agent_key(RUN)}" in account.objects
