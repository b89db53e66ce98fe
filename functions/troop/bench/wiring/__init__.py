"""Creates the adapters and steps of benchmarks from a function's environment."""
