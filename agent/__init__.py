"""Runs on each node of a fleet: stock Amazon Linux 2023, Python 3.9, the standard library and the AWS CLI.

The agent registers its node, waits at a barrier before each phase, runs the phase's script, samples the node meanwhile,
and uploads a summary. :mod:`agent.pack` packs it with :mod:`troop.measure` into one file.
"""
