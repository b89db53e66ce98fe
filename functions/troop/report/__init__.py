"""Reports of benchmark runs: made of what is kept of a run, and of nothing else, so that they can be made again."""
