"""Lambda entry points: each parses its event, calls the steps, and builds the response."""
