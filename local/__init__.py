"""Runs local AWS: the account that the demo, `make local` and the tests deploy Troop into.

`local.launcher` (project environment) starts and stops it. `local.account` is the process itself, in a separate
virtual environment. The product imports neither.
"""
