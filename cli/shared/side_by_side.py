"""Runs requests side by side, in threads that do not keep an interrupted command waiting."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from cli.shared.errors import CliError


def answers(requests: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """Returns the answer to each request, or its :class:`CliError`; raises any other error."""
    results: dict[str, Any] = {}
    defects: list[BaseException] = []

    def run(name: str, request: Callable[[], Any]) -> None:
        try:
            results[name] = request()
        except CliError as error:
            results[name] = error
        except BaseException as error:  # noqa: BLE001 raised below
            defects.append(error)

    # A pool would wait for all its threads after Ctrl-C.
    threads = [threading.Thread(target=run, args=one, daemon=True) for one in requests.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in defects:
        raise error
    return {name: results[name] for name in requests}
