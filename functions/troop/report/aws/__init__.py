"""Contains the adapters of reports."""
