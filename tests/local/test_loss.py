"""What `make loss` runs: files of benchmarks with its changes."""

from __future__ import annotations

import pytest

from cli.bench.files import load
from local.loss import NETWORK, RING, TIERS, Trial


@pytest.mark.parametrize("trial", [RING, TIERS, NETWORK], ids=lambda trial: trial.folder.name)
def test_each_trial_is_a_valid_file_whose_faults_are_expected_to_hold(trial: Trial) -> None:
    benchmark = load(trial.folder, trial.sizes or None, changes=dict(trial.changes)).benchmark
    faults = benchmark.phase("measure").faults
    assert len(faults) == len(trial.changes["phases.measure.faults"])
    assert all(fault.expect for fault in faults)
    assert {fault.role for fault in faults} <= {fleet.role for fleet in benchmark.fleets if fleet.count > 1}
