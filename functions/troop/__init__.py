"""Troop's domain package: pure cores and, in `troop.shared.aws`, the adapters with the AWS calls."""
