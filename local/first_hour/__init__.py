"""Runs the steps of docs/start/first-hour.md on local AWS."""
