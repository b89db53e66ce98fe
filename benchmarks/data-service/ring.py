"""Starts this node's server and waits for the whole ring, as cassandra-write does."""

from __future__ import annotations

import stack  # noqa: F401 - makes the modules of cassandra-write importable
import start

if __name__ == "__main__":
    start.main()
