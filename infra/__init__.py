"""Defines the infrastructure: one construct per capability, assembled in :mod:`infra.stack`."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The project's folder; in a wheel, that of its package."""

FUNCTIONS = ROOT / "functions"
"""The source of the functions' asset. Synth checks settings with the code that reads them in Lambda."""

if __name__ == "infra" and str(FUNCTIONS) not in sys.path:  # as in Lambda; a wheel has moved what is imported
    sys.path.insert(0, str(FUNCTIONS))
