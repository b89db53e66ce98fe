"""`python cli`: the command, whatever folder and environment it is started from."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

if __name__ == "__main__":
    # Python has put this very folder first, whose modules are to be found as `cli.…` alone.
    sys.path[:1] = [str(ROOT), str(ROOT / "functions")]
    try:
        from cli.app import main

        main()
    except KeyboardInterrupt:  # while the command was being imported
        sys.exit(130)
