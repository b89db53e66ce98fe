"""Serves the account's private endpoint for tests and the launcher, on the port of EC2 and Auto Scaling.

Every request needs the header `Authorization: Bearer TOKEN`. The token is in the run directory's account.json.

GET    /_account/decisions   authorisation decisions, see decisions.py
DELETE /_account/decisions   deletes them
GET    /_account/instances   the instances with processes, see host.py
POST   /_account/mirror      copies new networks into moto, see mirror.py
POST   /_account/scarcity    {"instance_type", "left", "reason", "market", "zone"}: makes an instance type scarce,
                             see patches/moto_activities.py
POST   /_account/impair      {"id"}: lets EC2's status check of an instance fail once
POST   /_account/interrupt   {"id", "seconds"}: interrupts a Spot instance, see interruptions.py
POST   /_account/rebalance   {"id"}: recommends a rebalance
POST   /_account/inside      {"id", "agent", "atd"}: whether these programs may run on an instance
POST   /_account/kill-shell  {"id", "command"}: kills the shell of a command on an instance
POST   /_account/commands    {"lost_answers", "late_seconds"}: how requests for commands go wrong, see run_command.py
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from typing import Any

from .authorization import Environ, StartResponse, WsgiApp
from .decisions import log
from .delays import Delays
from .host import Host
from .interruptions import Interruptions
from .mirror import mirror
from .patches.moto_activities import scarcity
from .patches.moto_replacement import Replacements, refill
from .run_command import RunCommand
from .secret import Secrets
from .subjects import backend

PREFIX = "/_account/"


class Control:
    """WSGI middleware in front of the gate."""

    def __init__(
        self,
        app: WsgiApp,
        host: Host,
        lock: threading.RLock,
        interruptions: Interruptions,
        replacements: Replacements,
        delays: Delays,
        drawn: Secrets,
        commands: RunCommand,
    ) -> None:
        self._app = app
        self._drawn = drawn
        self._lock = lock
        self._replacements = replacements
        self._routes: dict[tuple[str, str], Callable[[dict[str, Any]], Any]] = {
            ("GET", "decisions"): lambda _: log.entries(),
            ("DELETE", "decisions"): lambda _: log.clear(),
            ("GET", "instances"): lambda _: host.describe(),
            ("POST", "mirror"): lambda _: self._mirror(),
            ("POST", "scarcity"): self._make_scarce,
            ("POST", "interrupt"): lambda body: interruptions.order(body["id"], body["seconds"]),
            ("POST", "impair"): lambda body: self._impair(body["id"]),
            ("POST", "rebalance"): lambda body: interruptions.recommend(body["id"]),
            ("POST", "inside"): lambda body: commands.let_run(body["id"], body["agent"], body["atd"]),
            ("POST", "kill-shell"): lambda body: commands.kill_shell(body["id"], body["command"]),
            ("POST", "commands"): lambda body: commands.order(**body),
            ("POST", "hold"): lambda _: delays.hold(),
            ("POST", "release"): lambda _: delays.release(),
        }

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if not path.startswith(PREFIX):
            return self._app(environ, start_response)
        status, answer = self._answer(environ, path.removeprefix(PREFIX))
        body = json.dumps(answer).encode()
        start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return [body]

    def _answer(self, environ: Environ, endpoint: str) -> tuple[str, Any]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        if not self._drawn.opens(environ.get("HTTP_AUTHORIZATION", "")):
            return "403 Forbidden", {"message": "the token is missing or wrong"}
        if route := self._routes.get((environ["REQUEST_METHOD"], endpoint)):
            return "200 OK", route(json.loads(body or b"{}"))
        return "404 Not Found", {"message": f"no such endpoint: {PREFIX}{endpoint}"}

    def _make_scarce(self, body: dict[str, Any]) -> None:
        """Limits a capacity. If it grows, groups launch what they lack: on AWS, they never cease to try."""
        with self._lock:
            if scarcity.order(**body):
                for group in backend("autoscaling").autoscaling_groups.values():
                    refill(group)

    def _impair(self, instance_id: str) -> None:
        with self._lock:
            self._replacements.fail_status_check(backend("autoscaling"), instance_id)

    def _mirror(self) -> dict[str, int]:
        with self._lock:
            return mirror(backend("ec2"))
