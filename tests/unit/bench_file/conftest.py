"""Hypothesis searches the same examples on every machine: a failure is found again by whoever looks for it."""

from hypothesis import settings

settings.register_profile("core", deadline=None, derandomize=True, database=None, max_examples=100)
settings.load_profile("core")
