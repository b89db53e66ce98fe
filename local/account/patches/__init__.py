"""Small changes to MiniStack and moto where they differ from AWS: one a file, each with a contract test.

A patch replaces a named function and keeps the original; if an upgrade renames it, start-up fails. The exact versions
are checked first, because what is mended here is the behaviour of these two and of no other.
"""

from __future__ import annotations

from importlib.metadata import version

EXPECTED = {"ministack": "1.5.33", "moto": "5.2.5"}


def check_versions() -> None:
    """RuntimeError if another MiniStack or moto is installed than the patches were written for."""
    for package, expected in EXPECTED.items():
        if version(package) != expected:
            raise RuntimeError(
                f"{package} {version(package)} is installed, the patches are for {expected}: "
                "run the contract tests in tests/local against the new version, then change EXPECTED"
            )
