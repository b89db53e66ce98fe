"""The demonstration: one whole loop, told as it happens."""
