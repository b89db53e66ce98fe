"""Creates what makes reports, and what finds them."""
