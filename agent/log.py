"""What the agent says: lines on standard output, which user data has on the instance's console."""

from __future__ import annotations

import sys
import time


def say(message: str) -> None:
    sys.stdout.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} troop: {message}\n")
    sys.stdout.flush()
