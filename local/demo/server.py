#!/usr/bin/env python3
"""User data of the demo's instances: boots for a moment, then answers HTTP with the instance id."""

import json
import os
import pathlib
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BOOT_SECONDS = 2
PORT = 8080
INSTANCE = os.environ["INSTANCE_ID"]


class Hello(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps({"instance": INSTANCE}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Writes nothing: the console log is for errors."""


time.sleep(BOOT_SECONDS)
server = ThreadingHTTPServer((os.environ["INSTANCE_IP"], PORT), Hello)
pathlib.Path(os.environ["READY_FILE"]).touch()
server.serve_forever()
