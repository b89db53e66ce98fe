"""Decides what belongs to a run, and what teardown and the reaper remove."""
