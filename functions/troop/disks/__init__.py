"""Assembles the storage of a node for a benchmark: volumes, RAID-0, a cache on instance store, and a file system.

This package is on every node, beside :mod:`troop.measure`, so that all benchmarks share it. A script calls
:func:`troop.disks.assemble.assemble`. Planning is pure; only :mod:`troop.disks.machine` changes the node.
"""
