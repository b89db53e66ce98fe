"""Runs the measured phase of both roles: servers are watched while drivers write."""

from __future__ import annotations

import os

import drive
import watch

if __name__ == "__main__":
    (watch if os.environ["TROOP_ROLE"] == "servers" else drive).main()
