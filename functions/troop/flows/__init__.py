"""What a workflow's step does: reads through adapters, asks the core, writes through adapters; it decides nothing.

Clients, settings and the clock are given; nothing is read from the environment.
"""
