"""Puts the pieces together from a function's environment; made once, at its first call.

A module for each half, chaos and benchmarks, and for what the API asks of either, so that a function's cold start waits
for its own pieces alone. A piece takes clock and sleep from :mod:`troop.wiring.environment` when it is made.
"""
