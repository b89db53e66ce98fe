"""Defines the infrastructure: one construct per capability, assembled in :mod:`infra.stack`."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The project's folder."""

FUNCTIONS = ROOT / "functions"
"""The source of the functions' asset. Synth checks settings with the code that reads them in Lambda."""

if str(FUNCTIONS) not in sys.path:  # as in Lambda
    sys.path.insert(0, str(FUNCTIONS))
