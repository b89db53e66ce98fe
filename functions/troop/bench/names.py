"""Names: of runs, of what a run creates on AWS, of its tags, and of its objects in the results bucket.

Everything a run creates has a name made of the run and the cell, so that a step that is repeated finds what it made
before, and whoever sees the name in a console knows what it belongs to.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from troop.tags import CELL_TAG, DEPLOYMENT_TAG, EXPIRES_TAG, FLEET_TAG, RUN_TAG

RUNS_PREFIX = "runs/"
ARTIFACTS_PREFIX = "artifacts/"
ARTIFACT_LIFETIME = timedelta(days=30)
"""After their upload; the bucket itself removes them then."""

RECORD, REPORT_JSON, REPORT_HTML = "record.json", "report.json", "report.html"
"""Of a run that has ended, in its folder: its record, and its report, once for programs and once for people."""

LAUNCH, BOOT, COLLECT, TEARDOWN, OVER = "launch", "boot", "collect", "teardown", "over"
"""What a cell is at, besides its benchmark's phases, none of which is called so."""

STANDING = "standing"
"""What the cell of a standing fleet is at, once all of its nodes have been ready."""

AUTO_SCALING_ROLE = ("autoscaling.amazonaws.com", "AWSServiceRoleForAutoScaling")
SPOT_ROLE = ("spot.amazonaws.com", "AWSServiceRoleForEC2Spot")
"""A service, and the role with which it launches in an account; the same in every partition."""

RUN = re.compile(r"\d{8}-\d{6}-[0-9a-f]{8}")
CELL = re.compile(r"c\d{3}(-[2-9])?")
"""Attempts at a cell after its first one are cells of their own, ``c001-2``."""


def run_id(now: datetime, key: str) -> str:
    """``20261121-150312-1f0c9b2e``: runs sort by time; ``key`` tells apart those of one second."""
    return f"{now.astimezone(UTC):%Y%m%d-%H%M%S}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"


def cell_id(number: int) -> str:
    """``c001`` for the first one, 1."""
    return f"c{number:03d}"


def attempt_id(cell: str, attempt: int) -> str:
    """Id of an attempt at a cell; ``cell`` is the first one's, and so is the answer for 1."""
    return cell if attempt == 1 else f"{cell}-{attempt}"


def attempt_of(cell: str) -> tuple[str, int]:
    """The reverse: the first one's id, and which attempt it is."""
    first, _, attempt = cell.partition("-")
    return first, int(attempt or 1)


GROUPS = "troop-????????-??????-????????-c*"
"""Matches the names of all Auto Scaling groups that runs create, in IAM's wildcards."""


def fleet_name(run: str, cell: str, role: str) -> str:
    """Of a fleet's Auto Scaling group and of its launch template."""
    return f"troop-{run}-{cell}-{role}"


def backup_name(run: str, cell: str, role: str) -> str:
    """Of the Auto Scaling group that launches on demand what spot has not given. No role has a dot."""
    return f"{fleet_name(run, cell, role)}.backup"


def security_group_name(run: str, cell: str) -> str:
    return f"troop-{run}-{cell}"


def tags(deployment: str, run: str, cell: str, expires_at: str) -> dict[str, str]:
    """On everything a cell creates; what belongs to one fleet carries :data:`FLEET_TAG`, too."""
    return {DEPLOYMENT_TAG: deployment, RUN_TAG: run, CELL_TAG: cell, EXPIRES_TAG: expires_at}


def of_fleet(common: Mapping[str, str], role: str) -> dict[str, str]:
    return {**common, FLEET_TAG: role, "Name": fleet_name(common[RUN_TAG], common[CELL_TAG], role)}


def run_prefix(run: str) -> str:
    return f"{RUNS_PREFIX}{run}/"


def report_key(run: str) -> str:
    """The report of a run that has ended, for people."""
    return run_prefix(run) + REPORT_HTML


def definition_key(run: str) -> str:
    """The benchmark as it was accepted, see :mod:`troop.bench.definition`."""
    return f"{RUNS_PREFIX}{run}/definition.json"


def plan_key(run: str) -> str:
    """The run's cells as they are to be done, see :mod:`troop.bench.plan`."""
    return f"{RUNS_PREFIX}{run}/plan.json"


def file_key(run: str, name: str) -> str:
    """A file from beside the benchmark's."""
    return f"{RUNS_PREFIX}{run}/files/{name}"


def agent_key(run: str) -> str:
    return f"{RUNS_PREFIX}{run}/agent.pyz"


def cells_key(run: str) -> str:
    """The run's cells, as the workflow's map reads them."""
    return f"{RUNS_PREFIX}{run}/cells.json"


def estimate_key(run: str) -> str:
    """What the run was expected to cost when it was admitted, see :mod:`troop.bench.estimate`."""
    return f"{RUNS_PREFIX}{run}/estimate.json"


def image_key(run: str, architecture: str) -> str:
    """The machine image of all cells' nodes of an architecture: what is newest may change while a run goes on."""
    return f"{RUNS_PREFIX}{run}/images/{architecture}.json"


def artifact_key(sha256: str) -> str:
    """Artifacts are shared by runs: they are named by what is in them."""
    return f"{ARTIFACTS_PREFIX}{sha256}"


def cell_prefix(run: str, cell: str) -> str:
    return f"{RUNS_PREFIX}{run}/{cell}/"


def cell_definition_key(run: str, cell: str) -> str:
    """The benchmark that this cell is, of one scale step and one combination of parameters."""
    return f"{cell_prefix(run, cell)}definition.json"


def roster_key(run: str, cell: str) -> str:
    return f"{cell_prefix(run, cell)}roster.json"


def barrier_key(run: str, cell: str, phase: str) -> str:
    """Written by the workflow alone."""
    return f"{cell_prefix(run, cell)}barriers/{phase}.json"


def nodes_prefix(run: str, cell: str) -> str:
    """A node's registration is ``nodes/<instance id>.json`` below it."""
    return f"{cell_prefix(run, cell)}nodes/"


def phase_prefix(run: str, cell: str, phase: str) -> str:
    """A node's summary of a phase is ``<instance id>.json`` below it."""
    return f"{cell_prefix(run, cell)}phases/{phase}/"


def output_prefix(run: str, cell: str, phase: str) -> str:
    """What a node's command printed is ``<instance id>.log.gz`` below it."""
    return f"{cell_prefix(run, cell)}output/{phase}/"


def console_key(run: str, cell: str, instance_id: str) -> str:
    """What the console of a node says that never registered, or was lost."""
    return f"{output_prefix(run, cell, BOOT)}{instance_id}.log.gz"


def interruptions_prefix(run: str, cell: str) -> str:
    """The notice that spot takes a node back is ``<instance id>.json`` below it; the node writes it."""
    return f"{cell_prefix(run, cell)}interruptions/"


def doubt_key(run: str, cell: str) -> str:
    """Since when it is not known why a spot node shuts down."""
    return f"{cell_prefix(run, cell)}doubt.txt"


def results_key(run: str, cell: str) -> str:
    """The cell's merged results."""
    return f"{cell_prefix(run, cell)}results.json"


def node_of(key: str) -> str:
    """The instance id in the key of a node's object."""
    return key.rsplit("/", 1)[-1].split(".", 1)[0]
