"""Defines what routes of the API have in common. Layers ``api`` make no decisions, and need pydantic."""
