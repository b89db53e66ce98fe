"""Readers of other tools' output: each makes Troop's operations of it, one module a tool.

They run on the nodes: Python 3.9, standard library, bounded memory. What cannot be read is told by file and line, and
the rest is kept.
"""
