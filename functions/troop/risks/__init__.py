"""Predicts what chaos would find: reads the account once a day, and lists the risks of its units and resources."""
