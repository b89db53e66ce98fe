"""Writes this web node's share of flights and customers to the data tier.

Parameters: ``days`` with flights; ``customers``, who can log in.
"""

from __future__ import annotations

import subprocess
import sys

import tiers
from node import Phase


def main() -> None:
    done = subprocess.run(list(tiers.fill_command(Phase.of_script())), stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        sys.exit("the data tier could not be filled, see the output above")


if __name__ == "__main__":
    main()
