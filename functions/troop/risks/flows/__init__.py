"""Steps of risks: the daily reading."""
