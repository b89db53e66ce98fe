"""Models prices, billed time and bills."""
