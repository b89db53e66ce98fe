"""Compiles at synth the byte code of what functions import. Lambda's folders are read-only, so without it every cold
start compiles all imports.

Byte code belongs to one minor version of Python. Pyodide, a CPython of the functions' version on Node, compiles it for
Lambda. It does so whatever Python runs synth, so the same sources make the same assets everywhere. Python does not
compare files of this kind with their source (PEP 552), because archives keep no modification times.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from infra import npm
from infra.store import BundlingError

PYTHON_VERSION = "3.14"
"""The version of the functions' runtime; :data:`infra.functions.RUNTIME` must have the same."""

_NEVER_LOADED = (
    r"/(holidays/financial"
    r"|pydantic/v1"
    r"|aws_lambda_powertools/utilities/(?!data_classes|jmespath_utils|parameters|typing)[a-z_]+)/"
)
"""Packages in layers that no function imports: byte code would only make the layers larger."""

_PROGRAM = Path(__file__).with_name("byte_code.mjs")


def compile_folder(folder: Path, target: str, place: str) -> None:
    """Writes ``__pycache__`` beside the sources in ``folder``.

    Args:
        target: ``lambda`` or ``machine``, whose Python will import it.
        place: the folder's path there, for tracebacks.

    Raises:
        BundlingError: a source does not compile, or the compiler is missing.
    """
    options = ["-q", "-f", "--invalidation-mode", "unchecked-hash", "-x", _NEVER_LOADED]
    if target == "lambda":
        pyodide = str(npm.packages() / "pyodide")
        npm.run_node("compiling", [str(_PROGRAM), pyodide, PYTHON_VERSION, str(folder), place, *options])
        return
    command = [sys.executable, "-m", "compileall", *options, "-s", str(folder), "-p", place, str(folder)]
    # Hashes determine the order of sets; a prefix would put byte code elsewhere.
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        command, env=environment | {"PYTHONHASHSEED": "0"}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise BundlingError(f"compiling failed:\n{(done.stdout + done.stderr).strip()}")
