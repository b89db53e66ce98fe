"""Checks before the measurement that the whole chain works: each driver makes visits through each proxy."""

from __future__ import annotations

import visit
from node import Phase

if __name__ == "__main__":
    visit.check(Phase.of_script())
