"""Starts a server of HTTP that outlives this script. As a fault, kills it at the begin, and starts it at the end."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PORT = 8085
HOME = Path(os.environ["TROOP_SHARED"])
ADDRESS = os.environ["TROOP_ADDRESS"]


class Handler(BaseHTTPRequestHandler):
    """Answers after a while, which is long beside what a busy machine adds."""

    protocol_version = "HTTP/1.1"
    seconds = 0.0

    def do_GET(self) -> None:
        time.sleep(self.seconds)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        pass


def serve() -> None:
    Handler.seconds = json.loads(Path(os.environ["TROOP_PARAMETERS"]).read_text(encoding="utf-8"))["seconds"]
    ThreadingHTTPServer.request_queue_size = 128
    ThreadingHTTPServer((ADDRESS, PORT), Handler).serve_forever()


def kill() -> None:
    if (HOME / "server.pid").exists():
        os.kill(int((HOME / "server.pid").read_text()), signal.SIGKILL)
        (HOME / "server.pid").unlink()


def start() -> None:
    kill()
    process = subprocess.Popen([sys.executable, __file__, "serve"], start_new_session=True)
    (HOME / "server.pid").write_text(str(process.pid))
    while process.poll() is None:
        try:
            socket.create_connection((ADDRESS, PORT), 1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    sys.exit("the server has ended")


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    elif os.environ.get("TROOP_FAULT") == "begin":
        kill()
    else:
        start()
