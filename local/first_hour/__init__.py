"""Runs the steps of docs/first-hour.md on local AWS."""
