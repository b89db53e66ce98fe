"""Defines the data of benchmarks: the record of every run, and the bucket for the objects of runs."""

from __future__ import annotations

from constructs import Construct

from infra.data import make_bucket, make_table
from infra.settings import DeploymentSettings
from troop.bench.definition.names import ARTIFACT_LIFETIME, ARTIFACTS_PREFIX, DATA_LIFETIME, DATA_PREFIX, RUNS_PREFIX
from troop.shared.tables import RUNS


class BenchData(Construct):
    """Table and bucket.

    Attributes:
        runs: runs, their cells and resources, as :mod:`troop.shared.tables` describes it.
        results: the bucket. ``runs/`` has the messages between nodes and workflow, and results; ``artifacts/`` has
            what nodes install, named by its content; ``data/`` what they create to measure with.
    """

    def __init__(self, scope: Construct, construct_id: str, *, settings: DeploymentSettings) -> None:
        super().__init__(scope, construct_id)
        retain = settings.retain_data
        self.runs = make_table(self, RUNS, retain=retain)
        self.results = make_bucket(
            self,
            "Results",
            retain=retain,
            days={
                RUNS_PREFIX: settings.chaos.results_retention_days,
                ARTIFACTS_PREFIX: ARTIFACT_LIFETIME.days,
                DATA_PREFIX: DATA_LIFETIME.days,
            },
        )
