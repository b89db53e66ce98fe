"""Runs and fleets cost no more than their price, and the answers of their nodes are read."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError

from cli.bench import files as bench_files
from cli.client.client import TroopClient
from cli.prove import runs
from cli.prove.node import ask
from cli.prove.probes import Probes
from tests.unit.cli.prove.conftest import REGION
from troop.bench.admission.estimate import estimate
from troop.bench.money.prices import Prices, VolumePrice


@pytest.mark.parametrize(("desired", "ready"), [(2, 1), (1, 1)])
def test_a_fleet_is_scaled_and_ends_also_if_a_step_fails(
    probes: Probes, monkeypatch: pytest.MonkeyPatch, desired: int, ready: int
) -> None:
    fleet: dict[str, Any] = {"roles": [{"desired": 1, "in_service": 1, "ready": 1, "role": "nodes"}], "ended_at": None}
    done: list[Any] = []

    def scale(_: str, request: Any) -> None:
        done.append(request["count"])
        fleet["roles"] = [{"desired": desired, "in_service": desired, "ready": ready, "role": "n"}]

    def remove(_: str) -> None:
        done.append("down")
        fleet["ended_at"] = "now"

    def start() -> str:
        probes.ledger.add("fleet", "f1")
        return "f1"

    client = SimpleNamespace(fleet=lambda _: {"fleet": fleet}, scale_fleet=scale, remove_fleet=remove)
    monkeypatch.setattr(TroopClient, "benchmarks", client, raising=False)
    probes = replace(probes, start_fleet=start)
    status = f"[{{'desired': {desired}, 'in_service': {desired}, 'ready': {ready}}}]"
    assert probes.fleet()[-1] == {"step": "two nodes", "status": status}
    assert probes.ledger.remove_all()
    assert done == [2, "down"]


_HOURLY = {"t4g.small": "0.0168", "t4g.medium": "0.0336", "t3.small": "0.0208", "c6gd.medium": "0.0384"}
"""On demand in us-east-1, in US dollars."""


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A catalogue in which k6 and JMeter are built."""
    for name in ("k6-arm64", "jmeter.tar"):
        path = tmp_path / "catalogue" / runs.BUILT[name]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    monkeypatch.setattr(runs, "CATALOGUE", tmp_path / "catalogue")
    return tmp_path


CATALOGUE = runs.CATALOGUE


def test_runs_cost_no_more_than_their_price(built: Path) -> None:
    assert built
    volume = VolumePrice(Decimal("0.08"), (Decimal("0.005"),), Decimal("0.04"))
    hourly = {name: Decimal(one) for name, one in _HOURLY.items()}
    prices = Prices(on_demand=hourly, volumes={"gp3": volume}, cross_zone_gb=Decimal("0.02"))
    programs = runs.programs()
    assert programs
    for run in (runs.NODE, runs.SPOT, runs.CACHES, runs.CASSANDRA, programs):
        source = bench_files.load(run.folder, run.size, {"attempts": 1, **run.changes})
        most = estimate(source.plan, source.benchmark.money, prices).most
        assert 1.4 * float(most) < run.price, "some regions cost more"
        assert source.benchmark.expires_after <= 3000
    assert bench_files.CATALOGUE == CATALOGUE
    fleet = bench_files.load_fleet(runs.FLEET)
    assert Decimal(str(fleet.document["budget"])) == runs.FLEET_PRICE


def test_only_built_programs_are_part_of_the_run(built: Path, probes: Probes) -> None:
    run = runs.programs()
    assert run
    source = bench_files.load(run.folder, run.size, run.changes)
    assert [artifact.name for artifact in source.artifacts()] == ["k6-arm64", "jmeter.tar"]
    assert (run.folder / source.artifacts()[0].source).resolve() == built / "catalogue/http-load/build/k6-arm64"
    for name in ("k6-arm64", "jmeter.tar"):
        (built / "catalogue" / runs.BUILT[name]).unlink()
    assert probes.programs() == []


_URL = f"https://shop-prod-results.s3.{REGION}.amazonaws.com/runs/r/c001/definition.json?X-Amz-Signature=1"


@pytest.mark.parametrize(("status", "ok"), [(403, True), (200, False), (None, False)])
def test_the_address_for_the_nodes_network_is_tried_from_here_and_not_written(
    probes: Probes, account: boto3.Session, monkeypatch: pytest.MonkeyPatch, status: int | None, ok: bool
) -> None:
    s3, bucket = account.client("s3"), "shop-prod-results"
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    outputs = {
        "ask": {"name": "presigned", "ok": True, "output": _URL},
        "memory": {"name": "out-of-memory", "ok": True, "output": ""},
    }
    for phase, one in outputs.items():
        body = gzip.compress(f"{ask.MARK}{json.dumps(one)}\n".encode())
        s3.put_object(Bucket=bucket, Key=f"runs/r/c001/output/{phase}/AROA:i-1.log.gz", Body=body)
    addresses: list[str] = []

    def send(_: Any, request: Any) -> Any:
        addresses.append(request.url)
        if status is None:
            raise EndpointConnectionError(endpoint_url=request.url)
        return SimpleNamespace(status_code=status)

    monkeypatch.setattr("botocore.httpsession.URLLib3Session.send", send)
    monkeypatch.setattr(Probes, "_resources", lambda *_: ["association"])
    ran: list[runs.Run] = []

    def run(one: runs.Run) -> Any:
        ran.append(one)
        return {"run": {"run": "r"}, "cells": [{"reason": "nodes 1: the node rebooted"}]}

    deployment = replace(probes.deployment, outputs={"ResultsBucket": bucket})
    answers = replace(probes, run=run, deployment=deployment).node()
    assert addresses == [_URL]
    assert ran[0].changes == {"parameters.filtered": True}
    assert answers == [
        {"name": "presigned", "ok": ok, "output": f"from here: {status}"},
        outputs["memory"],
        {"name": "end", "ok": True, "output": "nodes 1: the node rebooted"},
    ]
