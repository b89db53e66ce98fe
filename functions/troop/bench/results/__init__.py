"""Computes the figures of a phase from its merged results: what a report shows of it, without prices and other
cells.
"""
