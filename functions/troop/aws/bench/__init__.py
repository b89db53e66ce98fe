"""Adapters of benchmarks: runs and their cells, fleets, prices and quotas, results, what is left over."""
