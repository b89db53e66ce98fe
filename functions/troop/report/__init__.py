"""Builds reports of benchmark runs from the stored data only, so that they can be built again at any time."""
