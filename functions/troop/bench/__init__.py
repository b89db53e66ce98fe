"""Models benchmarks: definition, plan, record, cost, progress and teardown of a run. Pure: no calls to AWS."""
