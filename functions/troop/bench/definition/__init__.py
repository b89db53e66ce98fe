"""Defines what is asked for: the benchmark, its plan, its limits, and the names of what is created for it."""
