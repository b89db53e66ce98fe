"""A benchmark's file as people write it: checked to the last key, and made what a run does
(:class:`troop.bench.definition.Benchmark`). The API and the command read it; workflow functions do not, and start
without pydantic.
"""
