"""Adapters of risks: the account's resources, prices, and the records."""
