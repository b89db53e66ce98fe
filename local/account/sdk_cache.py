"""Keeps what the AWS SDK reads and derives again for each client, for processes of which others are copies.

Such a process has its own installation of the SDK, and imports nothing of this package: it runs this file by its path.
"""

from __future__ import annotations

from functools import lru_cache, wraps
from importlib import import_module
from typing import Any

hooks: Any = import_module("botocore.hooks")
loaders: Any = import_module("botocore.loaders")


def _keep_models() -> None:
    """Clients of one session share parsed models in the same way, so nothing changes them."""
    parsed: dict[str, Any] = {}
    load = loaders.JSONFileLoader.load_file

    def load_once(loader: Any, path: str) -> Any:
        if path not in parsed:
            parsed[path] = load(loader, path)
        return parsed[path]

    loaders.JSONFileLoader.load_file = load_once


def _keep_names_of_services() -> None:
    """The SDK lists hundreds of folders for them."""
    names: dict[Any, list[str]] = {}
    listed = loaders.Loader.list_available_services

    @wraps(listed)
    def list_once(loader: Any, type_name: str) -> list[str]:
        which = (*loader.search_paths, type_name)
        if which not in names:
            names[which] = listed(loader, type_name)
        return list(names[which])

    loaders.Loader.list_available_services = list_once


def _keep_names_of_events() -> None:
    names: dict[str, str] = {}
    begin = hooks.EventAliaser.__init__

    @wraps(begin)
    def init(self: Any, *args: Any, **more: Any) -> None:
        begin(self, *args, **more)
        if self._event_aliases == hooks.EVENT_ALIASES:
            self._alias_name_cache = names

    hooks.EventAliaser.__init__ = init


def _keep_signatures() -> None:
    hooks.accepts_kwargs = lru_cache(maxsize=1024)(hooks.accepts_kwargs)


_keep_models()
_keep_names_of_services()
_keep_names_of_events()
_keep_signatures()
