#!/bin/bash
# Starts the worker, in place of one that runs: as the node's setup, and as its repair. Tasks of the old one come back.
set -euo pipefail
pid_file="$TROOP_SHARED/worker.pid" log="$TROOP_SHARED/worker.log"
if [ -s "$pid_file" ] && read -r old < "$pid_file" && kill "$old" 2> /dev/null; then
    for _ in $(seq 1 100); do
        kill -0 "$old" 2> /dev/null || break
        sleep 0.1
    done
    kill -9 "$old" 2> /dev/null || true # it hangs
fi
# In a session of its own: a spot notice during this script ends the script's group, and the worker must hand back first.
setsid nohup python3 "$TROOP_FILES/worker.py" "$TROOP_PARAMETERS" >> "$log" 2>&1 < /dev/null &
echo $! > "$pid_file"
sleep 1
kill -0 $! || { tail -n 20 "$log"; exit 1; }
echo "the worker runs as $!"
