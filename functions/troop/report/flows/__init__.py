"""Implements the steps of reports: make one, and find it for the API."""
