"""Judges measured values: comparisons in pairs, and how much they find. Pure, with only the standard library."""
