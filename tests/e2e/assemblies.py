"""Deploys the deployments of whole runs: synthesised together, and without the CDK CLI.

Most of the time of a `cdk deploy` goes into starting programs, which synthesise the same code again. So one process
synthesises all deployments, a result that stays until a source changes, and the test process uploads the files and
creates the stack itself. The demo and tests/e2e/test_lifecycle.py deploy with the CDK CLI, as users do.

`python -m tests.e2e.assemblies FOLDER` reads {name: context} from its standard input and synthesises into FOLDER.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cli.client.invoke_url import served_at
from local.launcher import LocalAccount
from local.project import ROOT, tool_environment
from tests.infra.results import RESULTS, result, sources
from tests.patience import PATIENCE

Context = Mapping[str, Any]

_ACCOUNT, _REGION = "000000000000", "us-east-1"
_QUALIFIER = "wholeruns"
"""Keeps the bucket and the version apart from those of `cdk bootstrap`, which may run in the same account."""
_BUCKET = f"cdk-{_QUALIFIER}-assets-{_ACCOUNT}-{_REGION}"
_VERSION = f"/cdk-bootstrap/{_QUALIFIER}/version"
_CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]
_THIS_FILE = Path(__file__)
_KIND = "deployments"
_MOST_ASSEMBLIES = 3
"""Assemblies that stay: of this hour, of the last one, which a process may still read, and of other sources. Each has
30 MB, and each hour needs another, because the calendars of :func:`local.settings.open_settings` follow the time.
"""


def assembly(contexts: Mapping[str, Context]) -> Path:
    """Returns the folder of an assembly with a stack for each deployment, which other processes share.

    Args:
        contexts: name of a deployment -> its settings, with keys as in cdk.json.
    """
    text = json.dumps(contexts, sort_keys=True)
    with _one_at_a_time():
        folder = result(_KIND, sources(), _THIS_FILE.read_bytes(), text, create=lambda to: _synthesise(to, text))
        by_age = sorted(RESULTS.glob(f"{_KIND}-*"), key=lambda path: path.stat().st_mtime)
        for old in by_age[:-_MOST_ASSEMBLIES]:
            shutil.rmtree(old, ignore_errors=True)
    return folder


def deploy(account: LocalAccount, folder: Path, name: str) -> dict[str, str]:
    """Creates the stack of a deployment from its assembly; returns its outputs, with the API's local address."""
    _bootstrap(account)
    url = _upload(account, folder, name)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    tags = [{"Key": key, "Value": value} for key, value in manifest["artifacts"][name]["properties"]["tags"].items()]
    cloudformation = account.client("cloudformation")
    cloudformation.create_stack(StackName=name, TemplateURL=url, Capabilities=_CAPABILITIES, Tags=tags)
    cloudformation.get_waiter("stack_create_complete").wait(
        StackName=name, WaiterConfig={"Delay": 0.5, "MaxAttempts": 2 * PATIENCE}
    )
    (stack,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
    endpoint = account.exports["AWS_ENDPOINT_URL"]
    return {output["OutputKey"]: served_at(endpoint, output["OutputValue"]) for output in stack["Outputs"]}


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Lets the other processes of a test run wait for a synthesis, which they would repeat."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    with (RESULTS / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _synthesise(folder: Path, contexts: str) -> None:
    environment = tool_environment() | {
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'functions'}",
        "CDK_VALIDATION": "false",  # half of a synthesis; tests of templates validate them
        "CDK_DEFAULT_ACCOUNT": _ACCOUNT,
        "CDK_DEFAULT_REGION": _REGION,
    }
    subprocess.run(
        [sys.executable, "-m", "tests.e2e.assemblies", str(folder)],
        cwd=ROOT,
        env=environment,
        input=contexts,
        text=True,
        timeout=4 * PATIENCE,
        check=True,
    )


def _bootstrap(account: LocalAccount) -> None:
    """Creates what templates need of `cdk bootstrap`: a bucket for files and a version."""
    account.client("s3").create_bucket(Bucket=_BUCKET)
    account.client("ssm").put_parameter(Name=_VERSION, Value="99", Type="String", Overwrite=True)


def _upload(account: LocalAccount, folder: Path, name: str) -> str:
    """Uploads the files of a stack that are not in the bucket yet; returns the address of the template."""
    s3 = account.client("s3")
    there = {known["Key"] for known in s3.list_objects_v2(Bucket=_BUCKET).get("Contents", [])}
    assets = json.loads((folder / f"{name}.assets.json").read_text(encoding="utf-8"))["files"]
    address = ""
    for asset in assets.values():
        (destination,) = asset["destinations"].values()
        key, path = destination["objectKey"], folder / asset["source"]["path"]
        if key not in there:
            s3.put_object(Bucket=_BUCKET, Key=key, Body=path.read_bytes())
        if path.name == f"{name}.template.json":
            address = f"https://{_BUCKET}.s3.{_REGION}.amazonaws.com/{key}"
    return address


def _main(folder: str) -> None:
    import aws_cdk as cdk  # slow, and only this process needs it

    from infra.settings import read_settings
    from infra.stack import TroopStack

    app = cdk.App(outdir=folder, context={"@aws-cdk/core:bootstrapQualifier": _QUALIFIER})
    written = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
    for context in json.load(sys.stdin).values():
        TroopStack(app, read_settings(written | context))
    app.synth()


if __name__ == "__main__":
    _main(sys.argv[1])
