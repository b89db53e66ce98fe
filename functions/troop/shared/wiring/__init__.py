"""Creates the adapters and steps from a function's environment, once, at its first call.

In each flat, ``steps`` is for workflows and ``services`` for the API, so a cold start creates only what it uses. Clock
and sleep come from :mod:`troop.shared.wiring.environment`.
"""
