"""Serves EC2, Auto Scaling, load balancing and prices of the account on a separate port: moto behind the gate."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

from .authorization import Environ, Gate, StartResponse, WsgiApp
from .config import Config
from .control import Control
from .delays import Delays
from .host import Host
from .interruptions import Interruptions
from .management import may_register
from .metadata import Metadata
from .mirror import mirror
from .nodes import node_environment
from .patches import (
    moto_activities,
    moto_address,
    moto_console,
    moto_endpoints,
    moto_groups,
    moto_images,
    moto_launch,
    moto_lifecycle,
    moto_lookups,
    moto_placement,
    moto_placement_groups,
    moto_protection,
    moto_reboot,
    moto_refreshes,
    moto_replacement,
    moto_spot,
    moto_spot_prices,
    moto_states,
    moto_targets,
    moto_templates,
    moto_termination,
    moto_weights,
)
from .price_and_quota_services import PriceAndQuotaServices
from .request_filter import HostCheck
from .run_command import RunCommand
from .secret import Secrets
from .service_events import events
from .subjects import backend


def serve(config: Config, host: Host, drawn: Secrets, commands: RunCommand, lock: threading.RLock) -> str:
    """Starts serving in background threads; returns the URL of the endpoint. `lock` serialises moto."""
    delays = Delays(config.notice_seconds, lock)
    replacements = moto_replacement.Replacements(delays, lock)
    interruptions = Interruptions(lock, config.wait_scale)
    if config.processes:
        moto_address.apply(host.address_for)
    events.deliver(config.lost_events)
    moto_activities.apply(delays)
    moto_lookups.apply()
    moto_placement.apply(host.is_ready)
    moto_launch.apply()
    moto_states.apply()
    moto_placement_groups.apply()
    moto_templates.apply()
    moto_weights.apply()
    moto_termination.apply(delays)
    moto_endpoints.apply(delays)
    moto_spot.apply(interruptions.taken_back)  # after moto_termination: it overrides the reason of a shutdown
    moto_groups.apply(delays, replacements.terminating)
    moto_lifecycle.apply(host.is_ready, replacements.terminating)
    moto_replacement.apply(replacements)
    moto_protection.apply(delays, host.is_ready, replacements.terminating)
    moto_refreshes.apply()
    moto_targets.apply(lambda instance_id: host.is_ready(instance_id, config.health_seconds))
    moto_reboot.apply(host.reboot)
    moto_console.apply(host.console)
    moto_images.register(backend("ec2"))
    moto_spot_prices.apply()
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    gate = Gate(_mirroring(DomainDispatcherApplication(create_backend_app)), lock)
    control = Control(gate, host, lock, interruptions, replacements, delays, drawn, commands)
    metadata = Metadata(control, backend("ec2"), lock, interruptions)
    server = make_server(
        "127.0.0.1",
        0,
        HostCheck(PriceAndQuotaServices(metadata, lock)),
        threaded=True,
        request_handler=MotoRequestHandler,
    )
    threading.Thread(target=server.serve_forever, name="compute", daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    host.follow(
        backend("ec2"),
        lock,
        node_environment(config, lambda instance_id: f"{url}{metadata.path_for(instance_id)}"),
        lambda instance_id: _put_into_service(instance_id, lock),
        lambda instance_id: moto_termination.turn_off(instance_id, lock),
        may_register if config.views else lambda _instance: False,
    )
    return url


def _put_into_service(instance_id: str, lock: threading.RLock) -> None:
    with lock:
        moto_activities.end("Launch", instance_id)


def _mirroring(app: WsgiApp) -> WsgiApp:
    """Copies new networks into moto before each request."""

    def mirrored(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        mirror(backend("ec2"))
        return app(environ, start_response)

    return mirrored
