"""Defines the API's models and routes of benchmarks and standing fleets."""
