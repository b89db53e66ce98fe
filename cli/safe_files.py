"""Reads regular files of a folder that somebody else may have made, and nothing outside of it."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

_AS_IT_IS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""A link is no file, and a pipe does not wait for its writer."""


class OutsideError(Exception):
    """A name that leads out of its folder, into a hidden part of it, or to no regular file; the message says which."""


def resolved(root: Path, name: str) -> Path:
    """Answers the path below the folder to which a name leads, through whatever links.

    Args:
        root: a folder; resolved.

    Raises:
        OutsideError: it leads out of the folder, or in a circle.
    """
    try:
        inside = (root / name).resolve().relative_to(root)
    except ValueError:
        raise OutsideError("it is a link that leads out of the folder") from None
    except (OSError, RuntimeError):  # Python before 3.13 raises the latter for a circle of links
        raise OutsideError("it is a link that leads nowhere") from None
    return inside


@contextmanager
def opened(root: Path, inside: Path) -> Iterator[BufferedReader]:
    """Opens a regular file below a folder for reading, folder by folder and without following any link: what was a file
    when :func:`resolved` looked is not read as a link later.

    Args:
        root: a folder; resolved.
        inside: as :func:`resolved` answers it.

    Raises:
        OSError: it cannot be opened.
        OutsideError: it is no regular file.
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
        OSError: it cannot be opened, or is no regular file.
    """
    try:
        file = _file(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OutsideError as error:
        raise OSError(errno.EINVAL, str(error), str(path)) from None
    with file:
        yield file


def _file(descriptor: int) -> BufferedReader:
    """Makes a file of a descriptor, which it closes if it is a device's, a pipe's or a folder's.

    Raises:
        OutsideError: it is.
    """
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OutsideError("it is no regular file")
    return os.fdopen(descriptor, "rb")
