"""Property tests are the same everywhere: the same examples at each run, and no deadline on a machine that is busy."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "troop",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("troop")
