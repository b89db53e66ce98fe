"""The plan of http-load for Locust: one address, at a rate or with users that do not pause. It knows nothing of Troop."""

import os

from locust import FastHttpUser, constant_throughput, task

RATE, USERS = float(os.environ["rate"]), int(os.environ["users"])


class Visitor(FastHttpUser):
    host = os.environ["url"]
    if RATE:
        wait_time = constant_throughput(RATE / USERS)

    @task
    def get(self) -> None:
        self.client.get("", name="get")
