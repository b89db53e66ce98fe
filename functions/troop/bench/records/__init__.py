"""Defines the record of a run and what is derived from it: its live view and its schedules."""
