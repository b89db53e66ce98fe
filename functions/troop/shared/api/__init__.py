"""Defines the API's models and routes; it makes no decisions. The only package that needs pydantic."""
