"""Forecasts decisions of chaos from a file of groups, or from the account as it is."""
