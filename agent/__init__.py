"""The one program that runs on a fleet's nodes: stock Amazon Linux 2023, Python 3.9, standard library, the AWS CLI.

It registers its node, waits at a barrier before each phase, runs the phase's script, samples the node meanwhile, and
uploads a summary. It is packed with :mod:`troop.measure` into one file, see :mod:`agent.pack`.
"""
