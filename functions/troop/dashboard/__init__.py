"""Renders what CloudWatch dashboards show of a deployment: rows in, HTML out. Pure; it cannot change anything."""
