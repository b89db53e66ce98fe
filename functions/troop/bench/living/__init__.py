"""Decides how the nodes of a standing fleet stay at work: their health, their repair, their number."""
