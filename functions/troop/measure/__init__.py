"""What nodes measure, and how it is summed up. Shared with the agent: standard library and Python 3.9 only."""
