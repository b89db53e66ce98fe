"""Contains the adapters of benchmarks: runs and their cells, fleets, prices and quotas, results, leftovers."""
