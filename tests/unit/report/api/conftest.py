"""Tests with an account in moto whose deployment runs benchmarks."""

from __future__ import annotations

from tests.unit.bench.api.conftest import *  # noqa: F403
