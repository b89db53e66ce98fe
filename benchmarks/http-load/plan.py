"""The plan of http-load for Locust: one address, at a rate or with users that do not pause. It knows nothing of
Troop.
"""

# ruff: noqa: SIM112 - variables have the names of the benchmark's properties

import os

from locust import FastHttpUser, constant_throughput, task

RATE, USERS = float(os.environ["rate"]), int(os.environ["users"])


class Visitor(FastHttpUser):  # type: ignore[misc]
    host = os.environ["url"]
    if RATE:
        wait_time = constant_throughput(RATE / USERS)

    @task  # type: ignore[untyped-decorator]
    def get(self) -> None:
        self.client.get("", name="get")
