"""Runs benchmarks and a fleet, and returns their records and what their nodes print as JSON."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from botocore.awsrequest import AWSRequest
from botocore.exceptions import BotoCoreError
from botocore.httpsession import URLLib3Session

from cli.prove import runs
from cli.prove.node.ask import MARK, PRESIGNED
from cli.prove.probe import Probe, step_outcomes

_FORBIDDEN = 403


class RunProbes(Probe):
    """Steps that run a benchmark or a fleet."""

    def fleet(self) -> list[dict[str, str]]:
        """Starts a standing fleet, doubles it, halves it, and ends it."""
        benchmarks, ids = self.client.benchmarks, list[str]()

        def view() -> Mapping[str, Any]:
            fleet: Mapping[str, Any] = benchmarks.fleet(ids[0])["fleet"]
            return fleet

        def start() -> None:
            ids.append(self.start_fleet())
            settle(1)

        def counts() -> list[dict[str, int]]:
            return [{name: role[name] for name in ("desired", "in_service", "ready")} for role in view()["roles"]]

        def settle(count: int) -> None:
            self._await(lambda: all({*one.values()} == {count} for one in counts()), lambda: str(counts()))

        def scale(count: int) -> None:
            benchmarks.scale_fleet(ids[0], {"count": count})
            settle(count)

        def end() -> None:
            benchmarks.remove_fleet(ids[0])
            self._await(lambda: bool(view()["ended_at"]), lambda: "the fleet has not ended")

        return step_outcomes(
            [("up", start), ("two nodes", lambda: scale(2)), ("one node", lambda: scale(1)), ("down", end)]
        )

    def spot(self) -> dict[str, Any]:
        return _record(self.run(runs.SPOT))

    def caches(self) -> dict[str, Any]:
        return _record(self.run(runs.CACHES))

    def cassandra(self) -> dict[str, Any]:
        return _record(self.run(runs.CASSANDRA))

    def programs(self) -> list[dict[str, Any]]:
        run = runs.programs()
        return self._answers(self.run(run)) if run else []

    def node(self) -> list[dict[str, Any]]:
        """Asks a node; then tries from here the address that is for the nodes' network."""
        filtered = bool(self._resources("AWS::Route53Resolver::FirewallRuleGroupAssociation"))
        view = self.run(replace(runs.NODE, changes={"parameters.filtered": filtered}))
        answers = self._answers(view)
        for one in answers:
            if one["name"] == PRESIGNED and one["ok"]:
                status = _status(one["output"])
                one |= {"ok": status == _FORBIDDEN, "output": f"from here: {status}"}
        reasons = [cell["reason"] or "" for cell in view["cells"]]
        reported = any("rebooted" in reason for reason in reasons)
        return [*answers, {"name": "end", "ok": reported, "output": "; ".join(reasons)}] if answers else []

    def _answers(self, view: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Returns what the scripts of a run have printed."""
        s3, bucket = self._client("s3"), self.deployment.outputs["ResultsBucket"]
        listed = s3.list_objects_v2(Bucket=bucket, Prefix=f"runs/{view['run']['run']}/").get("Contents", [])
        keys = [one["Key"] for one in listed if "/output/" in one["Key"]]
        texts = [gzip.decompress(s3.get_object(Bucket=bucket, Key=key)["Body"].read()).decode() for key in keys]
        answers = [answer for text in texts for answer in answers_in(text)]
        if not answers:
            raise ValueError("; ".join(cell["reason"] or "a node answered nothing" for cell in view["cells"]))
        return answers


def _status(address: str) -> int | None:
    """Returns the status of an answer; None without an answer."""
    try:
        return int(URLLib3Session(timeout=20).send(AWSRequest("GET", address).prepare()).status_code)
    except BotoCoreError:
        return None


def _record(view: Mapping[str, Any]) -> dict[str, Any]:
    """Returns how the cells of a run ended, and what its nodes were."""
    facts, labels = ("role", "instance_type", "zone", "purchase"), {c["cell"]: c["label"] for c in view["cells"]}
    return {
        "cells": [{key: cell[key] for key in ("label", "status", "phase", "reason")} for cell in view["cells"]],
        "nodes": [
            {"label": labels[one["cell"]]} | {key: one[key] for key in facts}
            for one in view["resources"]
            if one["kind"] == "instance" and one["cell"] in labels
        ],
    }


def answers_in(text: str) -> list[dict[str, Any]]:
    """Returns the answers in the output of a node's script."""
    return [json.loads(line[len(MARK) :]) for line in text.splitlines() if line.startswith(MARK)]
