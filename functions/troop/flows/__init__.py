"""Implements the steps of workflows: they read through adapters, ask the core and write through adapters.

Steps decide nothing themselves. Clients, settings and the clock are passed in; nothing is read from the environment.
"""
