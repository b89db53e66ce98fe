"""Creates the adapters and steps of risks from a function's environment."""
