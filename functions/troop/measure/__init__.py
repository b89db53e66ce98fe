"""Records and summarizes measurements on nodes. Shared with the agent: only the standard library and Python 3.9."""
