"""`python -m troop_aws`, and the console script `troop` of the wheel."""

import sys


def main() -> None:
    """Runs the command line."""
    try:
        from cli.app import main as run

        run()
    except KeyboardInterrupt:  # while the command was being imported
        sys.exit(130)


if __name__ == "__main__":
    main()
