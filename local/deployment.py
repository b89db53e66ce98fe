"""Runs `cdk bootstrap` and `cdk deploy` against the local account, with the project's CDK CLI."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cli.client.invoke_url import served_at

from .process import Progress, tail
from .project import CDK, ROOT, tool_environment

_ACCOUNT = "000000000000"
_REGION = "us-east-1"


class DeploymentError(RuntimeError):
    """A CDK command failed; the message has the end of its output."""


class Deployer:
    """Deploys apps into one account, and bootstraps it before the first deployment."""

    def __init__(self, run: Path, exports: Mapping[str, str], progress: Progress) -> None:
        self._run = run
        self._progress = progress
        self._endpoint = exports["AWS_ENDPOINT_URL"]
        self._environment = {
            **tool_environment(),
            **exports,
            "NODE_EXTRA_CA_CERTS": exports["AWS_CA_BUNDLE"],
            "NODE_NO_WARNINGS": "1",
            "CDK_DISABLE_CLI_TELEMETRY": "1",
            # Validation takes half of a synthesis. Tests and deployments into AWS validate the template.
            "CDK_VALIDATION": "false",
            "CDK_DEFAULT_ACCOUNT": _ACCOUNT,
            "CDK_DEFAULT_REGION": _REGION,
            "PYTHONPATH": f"{ROOT}:{ROOT / 'functions'}",
        }
        self._bootstrapped = False

    def deploy(self, context: Mapping[str, Any], directory: Path, app: str | None = None) -> dict[str, str]:
        """Deploys an app; returns the merged outputs of its stacks.

        Args:
            context: settings, with keys as in cdk.json.
            directory: the folder of the app's cdk.json.
            app: a command that replaces the one in cdk.json.

        Raises:
            DeploymentError: the CDK failed; with the end of its output.
        """
        if not self._bootstrapped:
            self._progress("cdk bootstrap")
            self._cdk("bootstrap", [f"aws://{_ACCOUNT}/{_REGION}"], self._run)
            self._bootstrapped = True
        self._progress("cdk deploy")
        outputs = self._run / "outputs.json"
        outputs.unlink(missing_ok=True)
        outputs.touch(0o600)
        arguments = ["--all", "--require-approval", "never", "--outputs-file", str(outputs), "--concurrency", "2"]
        assembly = self._run / "cdk.out"
        assembly.mkdir(0o700, exist_ok=True)
        arguments += ["--output", str(assembly)]
        for key, value in {**context, "troop:bundle": "machine"}.items():
            arguments += ["-c", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
        if app:
            arguments += ["--app", app]
        self._cdk("deploy", arguments, directory)
        stacks: dict[str, dict[str, str]] = json.loads(outputs.read_text() or "{}")
        return {key: served_at(self._endpoint, value) for stack in stacks.values() for key, value in stack.items()}

    def _cdk(self, command: str, arguments: list[str], directory: Path) -> None:
        log = self._run / f"cdk-{command}.log"
        log.touch(0o600)
        with log.open("wb") as output:
            done = subprocess.run(
                [str(CDK), command, *arguments, "--no-notices", "--progress", "events", "--ci"],
                cwd=directory,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
        if done.returncode:
            raise DeploymentError(f"cdk {command} failed ({done.returncode})\n{tail(log)}")
