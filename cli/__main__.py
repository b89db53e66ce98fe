"""`python cli`: the command, whatever folder and environment it is started from."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

if __name__ == "__main__":
    # Remove this folder from sys.path: import its modules only as `cli.NAME`.
    sys.path[:1] = [str(ROOT), str(ROOT / "functions")]
    try:
        from cli.app import main

        main()
    except KeyboardInterrupt:  # while the command was being imported
        sys.exit(130)
