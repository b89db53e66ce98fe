"""Works for as long as its node exists, and stores each result; this example counts. Python 3.9, standard library.

A result is an object below ``TROOP_DATA``, which the fleet's key ``own_data`` allows. Its name contains the node: so
workers do not overwrite each other's. Without ``own_data``, results are only lines of the log.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path


def main() -> None:
    parameters = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    for number in range(1, sys.maxsize):
        result = {"number": number, "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        deliver(f"{os.environ['TROOP_NODE']}/{number:06}.json", json.dumps(result))
        time.sleep(parameters["pause_seconds"])


def deliver(name: str, result: str) -> None:
    """Stores a result. The AWS CLI repeats requests that fail; a real worker would keep what still fails."""
    sys.stdout.write(f"{name}: {result}\n")
    sys.stdout.flush()
    if os.environ["TROOP_DATA"]:
        words = ["aws", "s3", "cp", "--only-show-errors", "-", f"{os.environ['TROOP_DATA']}{name}"]
        subprocess.run(words, input=result.encode(), check=False)


if __name__ == "__main__":
    main()
