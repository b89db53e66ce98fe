"""Troop's domain package: pure cores and, in `troop.aws`, the adapters with the AWS calls."""
