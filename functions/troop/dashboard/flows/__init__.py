"""Reads what the widgets of dashboards show."""
