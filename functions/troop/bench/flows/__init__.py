"""Implements steps of benchmarks and standing fleets: estimate, launch, gather, collect, tear down, reap, report."""
