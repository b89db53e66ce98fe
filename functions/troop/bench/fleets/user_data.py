"""Builds the script of a node's first boot, which fetches the agent from the results bucket and executes it.

It is for stock Amazon Linux 2023, where cloud-init runs it as root; local AWS runs the same text. Its output is on the
instance's console.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from troop.bench.definition import names

FORMAT = "troop.boot/1"
EXPIRY_GRACE_SECONDS = 300
"""Seconds after a run's expiry when its nodes shut down by themselves."""
LEAST_MINUTES, LEAST_STANDING_MINUTES = 1, 15
"""Minutes until the shutdown of a node that boots after its expiry. A node of a standing fleet first reads whether the
fleet has been extended since its launch template was written.
"""
LONGEST = 16_384
"""Maximum bytes that EC2 accepts, before base64."""


def user_data(boot: Mapping[str, Any]) -> str:
    """Returns a bash script; EC2 expects it in base64.

    The script schedules a shutdown that does not depend on the agent or on fetching it. The launch template makes a
    shutdown terminate the instance. With an emulated metadata service, the machine is a developer's and stays up.

    It also stores a script for further boots: a node that reboots reports it and shuts down, because its agent and the
    scheduled shutdown are gone. ``TROOP_NODE_HOME`` replaces the root of the file system there, too.

    Args:
        boot: ``{"format": "troop.boot/1", "bucket", "region", "run", "cell", "role", "role_id", "agent_sha256",
            "expires_at", "deployment", "stage", "standing"?}``, ``expires_at`` in seconds since 1970, ``standing`` true
            for standing fleets only; the agent gets it as a file.
    """
    assert boot["format"] == FORMAT
    values = {
        "@AGENT": f"s3://{boot['bucket']}/{names.agent_key(boot['run'])}",
        "@SHA256": boot["agent_sha256"],
        "@REGION": boot["region"],
        "@EXPIRES": str(int(boot["expires_at"]) + EXPIRY_GRACE_SECONDS),
        "@LEAST": str(LEAST_STANDING_MINUTES if boot.get("standing") else LEAST_MINUTES),
        "@BOOT": json.dumps(boot, sort_keys=True),
    }
    script = _SCRIPT
    for mark, value in values.items():
        script = script.replace(mark, shlex.quote(value))
    return script


_SCRIPT = r"""#!/bin/bash
# Boots a node of a benchmark: fetches Troop's agent and replaces this script with it.
set -uo pipefail
umask 077
agent=@AGENT sha256=@SHA256 expires=@EXPIRES
export AWS_DEFAULT_REGION=@REGION
home="${TROOP_NODE_HOME:-/var/lib/troop}"
export HOME="${HOME:-$home}"
say() { echo "$(date -u +%Y-%m-%dT%H:%M:%SZ) troop: $*"; }

if [ -z "${AWS_EC2_METADATA_SERVICE_ENDPOINT:-}" ]; then
    minutes=$(((expires - $(date +%s)) / 60 + 1))
    shutdown -h "+$((minutes > @LEAST ? minutes : @LEAST))" || say "cannot schedule the shutdown at the run's expiry"
    # They need the internet, try in vain, and would disturb a measurement.
    systemctl mask --runtime --now --no-block dnf-makecache.timer amazon-ssm-agent.service > /dev/null 2>&1
    # By default systemd stops a whole unit when the kernel kills one of its processes for memory.
    unit="${TROOP_NODE_HOME:-}/run/systemd/system/cloud-final.service.d"
    mkdir -p "$unit" && printf '[Service]\nOOMPolicy=continue\n' > "$unit/troop.conf" && systemctl daemon-reload
fi

mkdir -p "$home" && cd "$home" || { say "cannot use the directory $home"; exit 1; }
printf '%s\n' @BOOT > boot.json

# cloud-init runs this script once, and those in per-boot at each boot; /run is empty after a boot.
root="${TROOP_NODE_HOME:-}"
scripts="$root/var/lib/cloud/scripts/per-boot" first="$root/run/troop-first-boot"
mkdir -p "$scripts" "$root/run" && : > "$first"
cat > "$scripts/troop" <<END
#!/bin/bash
[ -e "$first" ] && exit 0
echo "troop: the node rebooted"
export HOME="$HOME"
cd "$home" && [ -f agent.pyz ] && timeout 120 python3 agent.pyz boot.json rebooted
[ -n "\${AWS_EC2_METADATA_SERVICE_ENDPOINT:-}" ] || shutdown -h now
END
chmod 700 "$scripts/troop"

for try in $(seq 1 30); do
    if aws s3 cp --only-show-errors --cli-connect-timeout 10 --cli-read-timeout 30 "$agent" agent.part; then
        if echo "$sha256  agent.part" | sha256sum --check --status; then
            mv agent.part agent.pyz
            say "fetched the agent, after $try tries"
            sync
            exec python3 agent.pyz boot.json
        fi
        say "$agent is not the agent of this run: its SHA-256 differs"
    fi
    sleep "$((try < 10 ? try : 10)).$((RANDOM % 10))"
done
say "cannot fetch the agent: $agent"
exit 1
"""
