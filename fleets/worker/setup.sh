#!/bin/bash
# Runs once on each node, including replacements. Processes that still run at its end continue.
set -euo pipefail
work="$TROOP_SHARED/worker.py"
cp "$TROOP_FILES/worker.py" "$work"
nohup python3 "$work" "$TROOP_PARAMETERS" > "$TROOP_SHARED/worker.log" 2>&1 < /dev/null &
sleep 1
kill -0 $! || { tail -n 20 "$TROOP_SHARED/worker.log"; exit 1; }
echo "the worker runs as $!"
