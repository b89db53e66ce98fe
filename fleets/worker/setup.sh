#!/bin/bash
# Runs once on each node, including replacements. The worker that it leaves running continues.
set -euo pipefail
exec bash "$TROOP_FILES/restart.sh"
