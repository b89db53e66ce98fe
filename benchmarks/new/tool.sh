#!/bin/sh
# Runs a tool for the warm-up and the measured time, and converts what it wrote. Replace the loop by your tool.
set -eu
export LC_ALL=C
kib=$(python3 -c 'import json, os; print(json.load(open(os.environ["TROOP_PARAMETERS"]))["kib"])')
until=$(python3 -c 'import os; print(int(float(os.environ["TROOP_MEASURED_FROM"]) + float(os.environ["TROOP_MEASURED_SECONDS"])) + 1)')

echo "ended,took" > calls.csv
while [ "$(date +%s)" -lt "$until" ]; do
  dd if=/dev/zero of=data bs="${kib}k" count=1 conv=fsync 2> dd.txt
  echo "$(date +%s.%N),$(sed -n 's/.*copied, \([^ ]*\) s,.*/\1/p' dd.txt)" >> calls.csv
done

# Other tools: `python3 -m troop.measure.collectors --help` lists k6, JMeter, fio, wrk and more.
python3 -m troop.measure.collectors table calls.csv --ended ended:s --time took:s --operation store --tool dd
