"""Checks before the measured phase that every server sees all others up and normal, with the same schema."""

from __future__ import annotations

import time

import server
from node import this_phase

SECONDS = 60.0


def main() -> None:
    phase = this_phase()
    seen = server.await_ring(phase, time.monotonic() + SECONDS)
    print(f"{len(seen.live)} servers up and normal, schema {', '.join(seen.schemas)}")
    print(f"so far: {server.totals(phase.address)}")


if __name__ == "__main__":
    main()
