"""Contains what adapters have in common. Every call to AWS is made in a layer ``aws``."""
