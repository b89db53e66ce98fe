"""Starts the account: checks versions, patches, serves moto, then runs MiniStack's own main.

The account ends with its standard input, and so do all processes that it started. So it never outlives its launcher,
even if that is killed.
"""

from __future__ import annotations

import json
import os
import random
import socket
import sys
import threading
from pathlib import Path

from .config import ACCOUNT_ID, REGION, Config
from .secret import Secrets

_IN_MOTO = (
    "AUTO_SCALING",
    "EC2",
    "ELASTIC_LOAD_BALANCING",
    "ELASTIC_LOAD_BALANCING_V2",
    "PRICING",
    "SERVICE_QUOTAS",
)


def main() -> None:
    config = Config.from_environment()
    os.umask(0o077)
    _end_with_launcher()
    drawn = Secrets.draw()
    port = _free_port()
    endpoint = f"https://127.0.0.1:{port}"
    certificate = config.run / "tmp" / "ministack-tls" / "server.crt"
    os.environ.update(
        GATEWAY_PORT=str(port),
        BIND_HOST="127.0.0.1",
        MINISTACK_HOST="127.0.0.1",
        AUTH="true",
        USE_SSL="1",
        IOT_MTLS_ENABLED="0",
        SFTP_ENABLED="0",
        SFN_WAIT_SCALE=str(config.wait_scale),
        STATE_DIR=str(config.run / "state"),
        S3_DATA_DIR=str(config.run / "s3"),
        MOTO_ACCOUNT_ID=ACCOUNT_ID,
        MOTO_EC2_LOAD_DEFAULT_AMIS="false",
        AWS_ENDPOINT_URL=endpoint,
        AWS_CA_BUNDLE=str(certificate),
        NODE_EXTRA_CA_CERTS=str(certificate),
        AWS_ACCESS_KEY_ID=drawn.key_id,
        AWS_SECRET_ACCESS_KEY=drawn.key,
        AWS_DEFAULT_REGION=REGION,
        AWS_REGION=REGION,
        AWS_EC2_METADATA_DISABLED="true",
    )
    # Imported here, because both libraries read the environment at import.
    from . import compute, control_plane
    from .endpoints import Endpoints
    from .host import Host
    from .run_command import RunCommand
    from .service_events import events

    host = Host(config.run, config.processes, config.reach, config.kernels)
    commands = RunCommand(host, events, config.wait_scale)
    lock = threading.RLock()
    moto_url = compute.serve(config, host, drawn, commands, lock)
    for service in _IN_MOTO:
        os.environ[f"AWS_ENDPOINT_URL_{service}"] = moto_url
    control_plane.patch(config, drawn, commands)
    exports = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    ready = {
        "pid": os.getpid(),
        "runner": host.runner_pid,
        "exports": exports,
        "control": f"{moto_url}/_account/",
        "token": drawn.token,
    }
    _write(config.run / "account.json", json.dumps(ready))
    control_plane.run(Endpoints(lock))


def _end_with_launcher() -> None:
    def wait() -> None:
        while os.read(0, 4096):
            pass
        os._exit(0)

    threading.Thread(target=wait, name="launcher-watch", daemon=True).start()


def _free_port() -> int:
    """Returns a port below the range of outgoing connections, so that none takes it before MiniStack binds it."""
    for port in random.sample(range(15000, 32000), 200):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("there is no free port on 127.0.0.1")


def _write(path: Path, text: str) -> None:
    part = path.with_suffix(".part")
    part.write_text(text)
    part.rename(path)


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        print(f"the account could not be started: {error!r}", file=sys.stderr, flush=True)
        raise
