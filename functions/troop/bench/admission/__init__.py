"""Checks a run before its launch: limits, quotas, images, snapshots, targets and its cost."""
