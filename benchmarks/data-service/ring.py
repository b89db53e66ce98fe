"""Starts this node's server and waits for the whole ring, as cassandra-write does."""

from __future__ import annotations

from stack import start

if __name__ == "__main__":
    start.main()
