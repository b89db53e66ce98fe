"""Troop's domain package: pure cores, and under `troop.aws` the adapters that hold the AWS calls."""
