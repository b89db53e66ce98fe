"""Checks benchmark files and builds :class:`troop.bench.definition.definition.Benchmark` from them. Only the API and
the command import this package, so workflow functions start without pydantic.
"""
