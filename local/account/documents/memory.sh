stress-ng --vm {{ Workers }} --vm-bytes {{ Percent }}% --timeout {{ DurationSeconds }}s
