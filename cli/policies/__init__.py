"""Parses, exports and compares what people have set for units."""
