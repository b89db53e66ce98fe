"""Benchmarks: what a file asks for, what a run creates, how it goes on, what must be gone in the end. No AWS here."""
