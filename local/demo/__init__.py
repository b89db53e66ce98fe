"""Runs the demonstration of a complete cycle, and prints its progress."""
