"""Emulates an AWS account: MiniStack and moto in one process, behind IAM, with a real process for every instance.

Runs in `.venv-account` as `python -m local.account`; only `local.launcher` starts it.
"""
