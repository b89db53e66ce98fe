"""Builds the wheel, and prepares a release."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The project's folder."""
