"""Asks AWS what no local test can answer: small steps, each with its price, whose answers go into one redacted file."""
