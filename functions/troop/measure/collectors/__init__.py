"""Reads other tools' output and converts it to Troop's operations, samples and rows; one module per tool.

The modules run on nodes: Python 3.9, standard library, bounded memory. They report unreadable lines by file and line
number, and keep the rest.
"""
