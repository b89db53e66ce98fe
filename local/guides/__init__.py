"""Runs the commands of the documents on local AWS, and compares what they print with what the documents show."""
