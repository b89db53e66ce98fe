"""Creates the adapters and steps from a function's environment, once, at its first call.

A module of the wiring is for one step or for the API (``services``), so a cold start creates only what it uses. Clock
and sleep come from :mod:`troop.shared.wiring.environment`.
"""
