"""Steps of chaos: decide, claim, terminate, check recovery, sweep, notify; and changes by people."""
