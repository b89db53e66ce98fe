"""Describes the release of a checkout: the hashes of what it deploys, and its commit.

``python -m infra.release`` builds it into the store of :mod:`infra.bundling`, and prints it.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from infra import ROOT
from infra.bundling import AGENT, bundle
from troop.shared.release import Release
from troop.shared.version import VERSION

COMMIT = "TROOP_COMMIT"
"""The environment variable with the commit, for builds outside a checkout, such as those of CodePipeline; empty for
none.
"""


def release(archives: Mapping[str, Path], agent: Path) -> Release:
    """Returns the release.

    Args:
        archives: the archives to deploy, by name, without that of the settings.
        agent: the nodes' agent.
    """
    workflows = sorted((ROOT / "statemachines").glob("*.asl.json"))
    files = {name: (path,) for name, path in archives.items()} | {"agent": (agent,), "workflows": tuple(workflows)}
    return Release(VERSION, commit(), {name: _digest(*paths) for name, paths in sorted(files.items())})


def _digest(*paths: Path) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def commit() -> str | None:
    """Returns the commit of the checkout; None for a package, and for a checkout with changes."""
    if (named := os.environ.get(COMMIT)) is not None:
        return named or None
    top, _, head = (_git("rev-parse", "--show-toplevel", "HEAD") or "").partition("\n")
    is_clean = changes() == "" and top and Path(top).resolve() == ROOT.resolve()
    return head if is_clean else None


def changes() -> str | None:
    """Returns a line for each file that differs from the commit, with git's letters for how; None without git.

    The list of deployments is no code, and many keep it beside the checkout's own files.
    """
    return _git("status", "--porcelain", "--", ".", ":!deployments.yaml")


def _git(*words: str) -> str | None:
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def main() -> None:
    """Builds the release for Lambda, and prints it as JSON."""
    bundled = bundle("lambda", "{}")
    sys.stdout.write(json.dumps(release(bundled.archives(), bundled.code / AGENT).document(), indent=2) + "\n")


if __name__ == "__main__":
    main()
