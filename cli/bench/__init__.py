"""Reads benchmark files, shows runs and fleets, and compares reports."""
