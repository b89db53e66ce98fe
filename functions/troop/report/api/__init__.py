"""Defines the API's routes of reports."""
