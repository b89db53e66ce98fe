"""Lambda entry points: parse, call, answer."""
