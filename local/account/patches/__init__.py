"""Changes MiniStack and moto where they differ from AWS: one difference a file, each with a contract test.

A patch replaces a named function and keeps the original. If an upgrade renames that function, start-up fails. The exact
versions are checked first, because the patches fit only the behaviour of these two.
"""

from __future__ import annotations

from importlib.metadata import version

EXPECTED = {"ministack": "1.5.33", "moto": "5.2.5"}


def check_versions() -> None:
    """Raises RuntimeError if the versions of MiniStack or moto differ from those of the patches."""
    for package, expected in EXPECTED.items():
        if version(package) != expected:
            raise RuntimeError(
                f"{package} {version(package)} is installed, the patches are for {expected}: "
                "run the contract tests in tests/local against the new version, then change EXPECTED"
            )
