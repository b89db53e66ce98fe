"""Troop's version: reports say by which one they were made. It is that of ``pyproject.toml``, which is not deployed."""

VERSION = "0.1.0"
