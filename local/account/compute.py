"""EC2, Auto Scaling and load balancing of the account: moto behind the gate, on a port of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

from .config import Config
from .control import Control
from .gate import Environ, Gate, StartResponse, WsgiApp
from .host import Host
from .mirror import mirror
from .patches import (
    moto_address,
    moto_lifecycle,
    moto_lookups,
    moto_placement,
    moto_refreshes,
    moto_replacement,
    moto_targets,
    moto_weights,
)
from .subjects import backend


def serve(config: Config, host: Host) -> str:
    """Starts serving in background threads; the endpoint's URL."""
    lock = threading.RLock()
    replacements = moto_replacement.Replacements(config.notice_seconds, lock)
    if config.processes:
        moto_address.apply(host.address_for)
    moto_lookups.apply()
    moto_placement.apply()
    moto_weights.apply()
    moto_lifecycle.apply(host.is_ready, replacements.terminating)
    moto_replacement.apply(replacements)
    moto_refreshes.apply()
    moto_targets.apply(host.is_ready)
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    app = Control(Gate(_mirroring(DomainDispatcherApplication(create_backend_app)), lock), host, lock)
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=MotoRequestHandler)
    threading.Thread(target=server.serve_forever, name="compute", daemon=True).start()
    host.follow(backend("ec2"), lock)
    return f"http://127.0.0.1:{server.server_port}"


def _mirroring(app: WsgiApp) -> WsgiApp:
    """Networks deployed since the last request are there for this one."""

    def mirrored(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        mirror(backend("ec2"))
        return app(environ, start_response)

    return mirrored
