"""Recognizes the disks and network interfaces to count, by their Linux names on EC2."""

from __future__ import annotations

import re

WHOLE_DISK = re.compile(r"nvme\d+n\d+|(sd|vd|xvd)[a-z]+|mmcblk\d+")
"""Names of whole disks, without partitions and devices on top of disks, which would count the same bytes twice."""

STACKED_DEVICE = re.compile(r"md\d+|md_\w+|dm-\d+|bcache\d+")
"""Names of devices on top of disks: software RAID, device mapper (LVM), a cache on an SSD. They have figures of their
own, and do not count for totals.
"""

INTERFACE = re.compile(r"(en|eth)\w+")
"""Names of network interfaces, without the loopback and those of containers."""
