"""Steps of chaos: decide, claim, terminate, watch, sweep, tell; and what people change."""
