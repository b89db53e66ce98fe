"""Keeps a configuration file of AWS with a profile for each local AWS, so that one shell reaches several."""

from __future__ import annotations

import configparser
import fcntl
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from .process import write_private

_ENDPOINT = "AWS_ENDPOINT_URL_"


def add(file: Path, name: str, exports: Mapping[str, str]) -> None:
    """Adds or replaces the profile of an account.

    Args:
        file: for AWS_CONFIG_FILE; only its user can read it.
        exports: environment variables that direct SDKs to the account.
    """
    addresses = {
        variable.removeprefix(_ENDPOINT).lower(): f"\nendpoint_url = {address}"
        for variable, address in exports.items()
        if variable.startswith(_ENDPOINT)
    }
    with _changed(file) as profiles:
        profiles[f"profile {name}"] = {
            "region": exports["AWS_REGION"],
            "aws_access_key_id": exports["AWS_ACCESS_KEY_ID"],
            "aws_secret_access_key": exports["AWS_SECRET_ACCESS_KEY"],
            "endpoint_url": exports["AWS_ENDPOINT_URL"],
            "ca_bundle": exports["AWS_CA_BUNDLE"],
            "services": name,
        }
        profiles[f"services {name}"] = addresses


def remove(file: Path, name: str) -> None:
    """Removes the profile of an account, if it is there."""
    with _changed(file) as profiles:
        profiles.remove_section(f"profile {name}")
        profiles.remove_section(f"services {name}")


@contextmanager
def _changed(file: Path) -> Iterator[configparser.RawConfigParser]:
    """Reads the profiles, and writes them after the block. Accounts that start or end at the same time wait."""
    with file.with_name(f"{file.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        profiles = configparser.RawConfigParser()
        profiles.read(file)
        yield profiles
        text = io.StringIO()
        profiles.write(text)
        write_private(file, text.getvalue())
