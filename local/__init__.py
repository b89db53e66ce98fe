"""AWS on this machine: the account Troop is deployed into by the demo, by `make local` and by the tests.

`local.launcher` (project environment) starts and stops it; `local.account` is the process itself and runs in an
environment of its own. The product imports neither.
"""
