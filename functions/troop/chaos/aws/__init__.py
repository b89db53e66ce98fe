"""Adapters of chaos: groups and their health, claims, events, decisions, policy, terminations."""
