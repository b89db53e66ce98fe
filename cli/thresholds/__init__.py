"""Thresholds from measured history: proposes a value, and shows what an alarm with it would have done."""
