"""Decides how a cell goes on: barriers, waits, verdicts, searches and attempts."""
