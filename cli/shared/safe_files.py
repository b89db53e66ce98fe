"""Reads regular files of an untrusted folder, and nothing outside it."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

_AS_IT_IS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Opens no link, and does not wait for the writer of a pipe."""


class OutsideError(Exception):
    """A name that leads out of its folder, into a hidden part, or not to a regular file; the message says which."""


def resolved(root: Path, name: str) -> Path:
    """Returns the path below the folder to which a name leads, through any links.

    Args:
        root: a folder; resolved.

    Raises:
        OutsideError: the name leads out of the folder, or its links form a circle.
    """
    try:
        inside = (root / name).resolve().relative_to(root)
    except ValueError:
        raise OutsideError("it is a link to outside the folder") from None
    except (OSError, RuntimeError):  # Python before 3.13 raises the latter for a circle of links
        raise OutsideError("it is a link without a target") from None
    return inside


@contextmanager
def opened(root: Path, inside: Path) -> Iterator[BufferedReader]:
    """Opens a regular file below a folder for reading, folder by folder, and follows no link.

    A file that became a link after :func:`resolved` is therefore not read.

    Args:
        root: a folder; resolved.
        inside: the result of :func:`resolved`.

    Raises:
        OSError: the file cannot be opened.
        OutsideError: it is not a regular file.
    """
    folder = os.open(root, _AS_IT_IS | os.O_DIRECTORY)
    try:
        for part in inside.parts[:-1]:
            before, folder = folder, os.open(part, _AS_IT_IS | os.O_DIRECTORY, dir_fd=folder)
            os.close(before)
        descriptor = os.open(inside.name, _AS_IT_IS, dir_fd=folder)
    finally:
        os.close(folder)
    with _file(descriptor) as file:
        yield file


@contextmanager
def regular(path: Path) -> Iterator[BufferedReader]:
    """Opens a regular file for reading, wherever its path leads.

    Raises:
        OSError: the file cannot be opened, or is not a regular file.
    """
    try:
        file = _file(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OutsideError as error:
        raise OSError(errno.EINVAL, str(error), str(path)) from None
    with file:
        yield file


def _file(descriptor: int) -> BufferedReader:
    """Returns a file for a descriptor; closes it if it is not a regular file.

    Raises:
        OutsideError: it is a device, a pipe or a folder.
    """
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OutsideError("it is not a regular file")
    return os.fdopen(descriptor, "rb")
