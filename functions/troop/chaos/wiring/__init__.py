"""Creates the adapters and steps of chaos from a function's environment."""
