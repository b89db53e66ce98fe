"""Reads the project's settings, and runs its CDK CLI."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import boto3

from cli.shared import aws
from cli.shared.errors import CliError, Exit
from infra import ROOT
from infra.settings import PREFIX, DeploymentSettings, read_settings, written_context
from infra.settings_record import SILENT
from troop.shared.errors import SettingsError
from troop.shared.stages import STAGE

CDK = ROOT / "node_modules" / ".bin" / "cdk"
_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


def chosen(stage: str | None, deployment: str | None) -> list[str]:
    """Returns the options STAGE and DEPLOYMENT as ``KEY=VALUE``."""
    stages = [f"{PREFIX}{STAGE}={stage}"] if stage else []
    return [*stages, *([f"{PREFIX}deployment={deployment}"] if deployment else [])]


def settings_with(overrides: Sequence[str], deployment: str | None = None) -> DeploymentSettings:
    """Reads the settings of cdk.json; ``KEY=VALUE`` of the command line overrides them.

    Args:
        deployment: the name on the command line, if any.

    Raises:
        CliError: USAGE, for an invalid setting.
    """
    written = written_context()
    context: dict[str, Any] = dict(written)
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals:
            raise CliError(Exit.USAGE, f"-c {override}: must be KEY=VALUE, such as troop:probability=0.1")
        context[key] = value
    try:
        settings = read_settings(context, written)
    except SettingsError as error:
        raise CliError(Exit.USAGE, f"settings: {error}") from None
    if deployment and settings.chaos.deployment != deployment:
        # The CDK does not distinguish the default's name on the command line from none.
        raise CliError(
            Exit.USAGE,
            f"the stage's deployment is {settings.chaos.deployment}: omit STAGE to deploy {deployment}, "
            "or set the stage's deployment to that name in cdk.json",
        )
    return settings


def cdk(session: boto3.Session, *arguments: str, quiet: bool = False) -> None:
    """Runs the project's CDK CLI with the session's region and credentials.

    Args:
        quiet: print its output only if it fails.

    Raises:
        CliError: FAILED; the CLI has printed the cause.
    """
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "AWS_REGION": session.region_name,
        "AWS_DEFAULT_REGION": session.region_name,
        "CDK_DISABLE_CLI_TELEMETRY": "1",
        "NODE_NO_WARNINGS": "1",
        SILENT: "1",
    }
    environment = _with_credentials(environment, session)
    if bundle := os.environ.get("AWS_CA_BUNDLE"):
        environment["NODE_EXTRA_CA_CERTS"] = bundle  # Node's name for it
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


def _with_credentials(environment: Mapping[str, str], session: boto3.Session) -> dict[str, str]:
    """Adds what tells the CDK whose permissions apply: the session's role or profile, if it has its own.

    The CDK prefers keys of the environment even to a profile that is named; boto3 does not.
    """
    inner: Any = session._session  # boto3 has no public way to it
    profile = inner.instance_variables().get("profile")
    lent = inner.lent if isinstance(inner, aws.Session) else None
    if profile and not lent and _starts_from_the_environment(inner, profile):
        lent = inner.get_credentials()
    if lent:
        keys = lent.get_frozen_credentials()
        named = zip(_KEYS, (keys.access_key, keys.secret_key, keys.token), strict=True)
        own = {name: value for name, value in named if value}
    elif profile:
        own = {"AWS_PROFILE": profile}
    else:
        return {**environment, **({"AWS_PROFILE": inner.profile} if inner.profile else {})}
    others = (*_KEYS, "AMAZON_ACCESS_KEY_ID", "AMAZON_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_DEFAULT_PROFILE")
    return {name: value for name, value in environment.items() if name not in others} | own


def _starts_from_the_environment(inner: Any, profile: str) -> bool:
    """Whether a profile's role is assumed with the environment's keys, which the CDK would take for its own."""
    profiles, seen = inner.full_config.get("profiles", {}), set[str]()
    while profile in profiles and profile not in seen:
        seen.add(profile)
        if profiles[profile].get("credential_source") == "Environment":
            return True
        profile = profiles[profile].get("source_profile", "")
    return False
