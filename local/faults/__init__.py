"""Injects every lasting fault into real kernels by a deployed Troop, and measures how each one ends.

`python -m local.faults` is `make faults`: see :mod:`local.faults.__main__`.
"""
