"""Decides what is launched for a cell or a standing fleet, and what replaces it."""
