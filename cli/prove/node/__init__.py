"""The benchmark of the node's questions: Troop copies this folder to the node."""
