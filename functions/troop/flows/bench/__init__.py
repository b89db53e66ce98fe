"""Steps of benchmarks: estimate, launch, gather, collect, tear down, reap, report; and standing fleets."""
