"""Defines the API's models and routes of risks."""
