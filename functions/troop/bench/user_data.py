"""What a node runs at its first boot: it fetches the agent from the results bucket, and becomes it.

It is for stock Amazon Linux 2023, as root, by cloud-init; local AWS runs the same text. Whatever it prints is on the
instance's console.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from troop.bench import names

FORMAT = "troop.boot/1"
EXPIRY_GRACE_SECONDS = 300
"""After a run's expiry, before its nodes end themselves."""
LONGEST = 16_384
"""Bytes EC2 takes, before base64."""


def user_data(boot: Mapping[str, Any]) -> str:
    """A bash script; EC2 wants it in base64.

    The shutdown it arranges rests on nothing of ours: neither on the agent nor on its ever being fetched. Instances
    end by it because their launch template says so. Where the metadata service is an emulated one the machine is
    somebody's own, and is left running.

    Args:
        boot: ``{"format": "troop.boot/1", "bucket", "region", "run", "cell", "role", "agent_sha256", "expires_at"}``,
            the last in seconds since 1970; the agent gets it as a file.
    """
    assert boot["format"] == FORMAT
    values = {
        "@AGENT": f"s3://{boot['bucket']}/{names.agent_key(boot['run'])}",
        "@SHA256": boot["agent_sha256"],
        "@REGION": boot["region"],
        "@EXPIRES": str(int(boot["expires_at"]) + EXPIRY_GRACE_SECONDS),
        "@BOOT": json.dumps(boot, sort_keys=True),
    }
    script = _SCRIPT
    for mark, value in values.items():
        script = script.replace(mark, shlex.quote(value))
    return script


_SCRIPT = r"""#!/bin/bash
# A node of a benchmark: fetches Troop's agent, and becomes it.
set -uo pipefail
umask 077
agent=@AGENT sha256=@SHA256 expires=@EXPIRES
export AWS_DEFAULT_REGION=@REGION
home="${TROOP_NODE_HOME:-/var/lib/troop}"
export HOME="${HOME:-$home}"
say() { echo "$(date -u +%Y-%m-%dT%H:%M:%SZ) troop: $*"; }

if [ -z "${AWS_EC2_METADATA_SERVICE_ENDPOINT:-}" ]; then
    minutes=$(((expires - $(date +%s)) / 60 + 1))
    shutdown -h "+$((minutes > 1 ? minutes : 1))" || say "a shutdown at the run's expiry could not be arranged"
fi

mkdir -p "$home" && cd "$home" || { say "there is no directory $home"; exit 1; }
printf '%s\n' @BOOT > boot.json

for try in $(seq 1 30); do
    if aws s3 cp --only-show-errors --cli-connect-timeout 10 --cli-read-timeout 30 "$agent" agent.part; then
        if echo "$sha256  agent.part" | sha256sum --check --status; then
            mv agent.part agent.pyz
            say "the agent is here, after $try tries"
            exec python3 agent.pyz boot.json
        fi
        say "$agent is not the agent this run began with"
    fi
    sleep "$((try < 10 ? try : 10)).$((RANDOM % 10))"
done
say "the agent could not be fetched: $agent"
exit 1
"""
