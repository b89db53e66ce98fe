#!/usr/bin/env python3
"""Stands in for the AWS CLI on a node, against a fake account: what the agent uses of it.

Python 3.9, no packages.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("words", nargs="+")
    parser.add_argument("--only-show-errors", action="store_true")
    for option in ("--region", "--expires-in", "--cli-connect-timeout", "--cli-read-timeout"):
        parser.add_argument(option)
    options = parser.parse_intermixed_args()
    words = options.words
    if words[:2] == ["s3", "presign"]:
        sys.stdout.write(ask("POST", "presign/" + key(words[2])).decode() + "\n")
    elif words[:2] == ["s3", "cp"] and words[2].startswith("s3://"):
        Path(words[3]).write_bytes(ask("GET", key(words[2])))
    elif words[:2] == ["s3", "cp"]:
        ask("PUT", key(words[3]), Path(words[2]).read_bytes())
    else:
        sys.exit(f"the fake knows nothing of {words}")


def key(address: str) -> str:
    return address[len("s3://") :]


def ask(method: str, path: str, body: bytes = b"") -> bytes:
    """Sends a request by a bare socket: ``urllib`` takes longer to import than all the rest of a call."""
    host, _, port = os.environ["AWS_ENDPOINT_URL"].rpartition("/")[2].partition(":")
    head = f"{method} /{path} HTTP/1.0\r\nAuthorization: the fake CLI\r\nContent-Length: {len(body)}\r\n\r\n"
    try:
        with socket.create_connection((host, int(port)), timeout=300) as connection:
            connection.sendall(head.encode() + body)
            with connection.makefile("rb") as answer:
                status, (_, _, content) = answer.readline(), answer.read().partition(b"\r\n\r\n")
    except OSError as error:
        sys.exit(f"fatal error: {error}")
    if status.split()[1] != b"200":
        sys.exit(f"fatal error: {status.decode().strip()}")
    return content


if __name__ == "__main__":
    main()
