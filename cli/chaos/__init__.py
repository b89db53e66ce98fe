"""Explains units, their decisions and events, and the switch in words."""
