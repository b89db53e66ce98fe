"""Opens ``https://`` addresses that somebody else has named, and nothing else."""

from __future__ import annotations

import ssl
import urllib.request
from typing import Any


class NoTlsError(OSError):
    """An address that is not ``https://``, or that redirects to one."""


class _ToTls(urllib.request.HTTPRedirectHandler):
    """A handler that follows redirects to TLS addresses only."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if not newurl.startswith("https://"):
            fp.close()
            raise NoTlsError("it redirects to an address without TLS")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def opened(address: str, seconds: float, context: ssl.SSLContext | None = None) -> Any:
    """Opens an address for reading. Uses the proxy of the environment, and has no handler for files and other schemes.

    Args:
        seconds: how long the connection may be silent.
        context: the certificates to trust; by default those of the system.

    Raises:
        NoTlsError: it is not ``https://``, or redirects to one that is not.
        OSError, http.client.HTTPException: there was no answer, or a refusal.
    """
    if not address.startswith("https://"):
        raise NoTlsError("it is an address without TLS")
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPSHandler(context=context),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
        _ToTls(),
    ):
        opener.add_handler(handler)
    return opener.open(urllib.request.Request(address, headers={"User-Agent": "troop"}), timeout=seconds)
