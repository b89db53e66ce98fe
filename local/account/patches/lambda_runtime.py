"""Limits a function to the packages of the runtime and its own.

MiniStack's workers import all packages that are installed with MiniStack, so a dependency that is missing from the
layers stays unnoticed. Lambda's Python runtime has the AWS SDK and its dependencies.
"""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

from ministack.core import lambda_runtime

_SDK = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "six.py", "urllib3")


def apply(run: Path) -> list[str]:
    """Returns the entries of ``sys.path`` with which functions run."""
    packages = run / "lambda-packages"
    packages.mkdir(exist_ok=True)
    installed = Path(sysconfig.get_path("purelib"))
    for name in _SDK:
        if not (installed / name).exists():
            raise RuntimeError(f"{name} of the AWS SDK is not in {installed}")
        (packages / name).symlink_to(installed / name)
    library = sysconfig.get_path("stdlib")
    path = [entry for entry in sys.path if entry.startswith(library) and not entry.endswith("-packages")]
    path.append(str(packages))
    prologue = f"import sys\nsys.path[:] = {path!r}\n"
    lambda_runtime._PYTHON_WORKER_SCRIPT = prologue + lambda_runtime._PYTHON_WORKER_SCRIPT
    return path
