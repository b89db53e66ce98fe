cd /var/tmp && stress-ng --iomix {{ Workers }} --iomix-bytes {{ Percent }}% --timeout {{ DurationSeconds }}s
