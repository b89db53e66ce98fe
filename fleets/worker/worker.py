"""Works for as long as its node exists; this example only prints a line. Python 3.9, standard library."""

import json
import sys
import time
from pathlib import Path


def main() -> None:
    parameters = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    while True:
        sys.stdout.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} at work\n")
        sys.stdout.flush()
        time.sleep(parameters["pause_seconds"])


if __name__ == "__main__":
    main()
