"""Which of a machine's devices count as its own, by the names that Linux gives them on EC2."""

from __future__ import annotations

import re

WHOLE_DISK = re.compile(r"nvme\d+n\d+|(sd|vd|xvd)[a-z]+|mmcblk\d+")
"""Neither partitions nor what lies on top of disks, which would count their bytes twice."""

INTERFACE = re.compile(r"(en|eth)\w+")
"""Of a network; neither the loopback nor what containers see."""
