"""Defines Troop's version, which reports contain. It equals that of ``pyproject.toml``, which is not deployed."""

VERSION = "0.1.0"
