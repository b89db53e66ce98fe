"""The project as a deployment needs it: its settings, and its CDK CLI."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import boto3

from cli.errors import CliError, Exit
from infra import ROOT
from infra.settings import DeploymentSettings, read_settings
from troop.errors import SettingsError

CDK = ROOT / "node_modules" / ".bin" / "cdk"


def settings_with(overrides: Sequence[str]) -> DeploymentSettings:
    """The settings of cdk.json, with ``KEY=VALUE`` of the command line before them.

    Raises:
        CliError: USAGE, for a setting that cannot be used.
    """
    context: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals:
            raise CliError(Exit.USAGE, f"-c {override}: must be KEY=VALUE, such as troop:probability=0.1")
        context[key] = value
    try:
        return read_settings(context)
    except SettingsError as error:
        raise CliError(Exit.USAGE, f"settings: {error}") from None


def cdk(session: boto3.Session, *arguments: str, quiet: bool = False) -> None:
    """Runs the project's CDK CLI with the session's region and this process's credentials.

    Args:
        quiet: keeps its output back unless it fails.

    Raises:
        CliError: FAILED; what was wrong the CLI has said itself.
    """
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "AWS_REGION": session.region_name,
        "AWS_DEFAULT_REGION": session.region_name,
        "CDK_DISABLE_CLI_TELEMETRY": "1",
        "NODE_NO_WARNINGS": "1",
    }
    if bundle := os.environ.get("AWS_CA_BUNDLE"):
        environment["NODE_EXTRA_CA_CERTS"] = bundle  # what Node knows it by
    done = subprocess.run(
        [str(CDK), *arguments, "--no-notices"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE if quiet else None,
        stderr=subprocess.STDOUT if quiet else None,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.stderr.write(done.stdout or "")
        raise CliError(Exit.FAILED, f"cdk {arguments[0]} failed ({done.returncode})")
