"""Tests with an account in moto."""

from __future__ import annotations

from tests.unit.account.fixtures import *  # noqa: F403
