"""Finds a deployment and calls its API with signed requests."""
