"""Runs the measured phase of all roles: servers are watched while drivers send requests."""

from __future__ import annotations

import os

import drive
import watch

if __name__ == "__main__":
    (drive if os.environ["TROOP_ROLE"] == "drivers" else watch).main()
