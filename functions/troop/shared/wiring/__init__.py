"""Creates the adapters and steps from a function's environment, once, at its first call.

Each half, chaos and benchmarks, has a module, and so has what the API needs of each. So a function's cold start creates
only what it uses. Clock and sleep come from :mod:`troop.shared.wiring.environment`.
"""
