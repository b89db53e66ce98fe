"""Generates the names of runs, of their AWS resources and tags, and of their objects in the results bucket.

Names contain the run and the cell, so that a repeated step finds what it has already created, and that people can
identify resources in the AWS console.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from troop.shared.tags import CELL_TAG, DEPLOYMENT_TAG, EXPIRES_TAG, FLEET_TAG, RUN_TAG

RUNS_PREFIX = "runs/"
ARTIFACTS_PREFIX = "artifacts/"
ARTIFACT_LIFETIME = timedelta(days=30)
"""Time after upload when the bucket's lifecycle rule deletes artifacts."""
SCHEDULES_PREFIX = "schedules/"
"""Requests that schedules repeat. They stay until their schedule is removed."""
DATA_PREFIX = "data/"
"""Objects that nodes create to measure with, if the deployment and the file allow it."""
DATA_LIFETIME = timedelta(days=2)
"""Age at which objects of a cell expire: longer than a cell, whose scripts delete them. The bucket's lifecycle
rule deletes what a failed cell leaves.
"""

RECORD, REPORT_JSON, REPORT_HTML = "record.json", "report.json", "report.html"
"""Files in the folder of a run that has ended: its record, and its report for programs and for people."""

LIVE = "live.json"
"""File in the folder of a run that goes on: the last merge of its running summaries."""

LAUNCH, BOOT, COLLECT, TEARDOWN, OVER = "launch", "boot", "collect", "teardown", "over"
"""Steps of a cell besides its benchmark's phases, which cannot have these names."""

STANDING = "standing"
"""Step of a standing fleet's cell once all of its nodes have been ready."""

RUN = re.compile(r"\d{8}-\d{6}-[0-9a-f]{8}")
_RUN_CHARACTERS = 24
CELL = re.compile(r"c\d{3}(-[2-9])?")
"""Attempts at a cell after the first are separate cells, such as ``c001-2``."""


def run_id(now: datetime, key: str) -> str:
    """Returns an id such as ``20261121-150312-1f0c9b2e``. Ids sort by time; ``key`` separates runs of one second."""
    return f"{now.astimezone(UTC):%Y%m%d-%H%M%S}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"


def following_execution(name: str) -> str:
    """Returns the name of the execution that continues a fleet's workflow: ``RUN-2`` after ``RUN``."""
    run = run_of_execution(name)
    return f"{run}-{int(name.removeprefix(run).removeprefix('-') or 1) + 1}"


def run_of_execution(name: str) -> str:
    """Returns the run of an execution of its workflow, by the execution's name."""
    return name[:_RUN_CHARACTERS]


def schedule_key(name: str, digest: str) -> str:
    """Returns the key of the request that a schedule repeats."""
    return f"{SCHEDULES_PREFIX}{name}/{digest}.json"


def cell_id(number: int) -> str:
    """Returns a cell's id: ``c001`` for number 1."""
    return f"c{number:03d}"


def attempt_id(cell: str, attempt: int) -> str:
    """Returns the id of an attempt at a cell; ``cell`` is the id of the first attempt."""
    return cell if attempt == 1 else f"{cell}-{attempt}"


def attempt_of(cell: str) -> tuple[str, int]:
    """Returns the id of the first attempt and the attempt's number; the reverse of :func:`attempt_id`."""
    first, _, attempt = cell.partition("-")
    return first, int(attempt or 1)


ANY_RUN = "????????-??????-????????"
"""IAM wildcard pattern of runs' ids. IAM's asterisk also matches slashes, and files choose names: ``runs/*/x.json`` is
also the barrier of a phase ``x``. So patterns of objects begin with ids of a fixed length.
"""

GROUPS = f"troop-{ANY_RUN}-c*"
"""IAM wildcard pattern of the Auto Scaling groups, and of the placement groups, that runs create."""

QUEUES_PREFIX = "troop-"
"""The beginning of the names of queues that standing fleets create."""

QUEUE = re.compile(rf"{QUEUES_PREFIX}{RUN.pattern}-{CELL.pattern}(-dead)?")
"""The names of these queues."""

QUEUES = (f"troop-{ANY_RUN}-c???", f"troop-{ANY_RUN}-c???-dead")
"""IAM wildcard patterns of the queues that standing fleets create: of their tasks, and of the dead letters."""


def in_any_run(name: str) -> str:
    """Returns the IAM wildcard pattern of an object in the folders of runs."""
    return f"{RUNS_PREFIX}{ANY_RUN}/{name}"


def in_any_cell(*objects: str) -> tuple[str, ...]:
    """Returns the IAM wildcard patterns of objects in the folders of cells, and of further attempts at them."""
    return tuple(in_any_run(f"{cell}/{name}") for name in objects for cell in ("c???", "c???-?"))


WRITTEN_BY_CELL = (
    in_any_run("cells.json"),
    *in_any_cell("barriers/*", "points/*", f"output/{BOOT}/*", "replaced/*", "unit-faults/*"),
    *in_any_cell("choices.json", "doubts.json", "report-part.json", "results.json", "roster.json"),
)
"""IAM wildcard patterns of the objects that lead a cell; no scripts, no definitions, and nothing that nodes write."""


def fleet_name(run: str, cell: str, role: str) -> str:
    """Returns the name of a fleet's Auto Scaling group, launch template, placement group and security group."""
    return f"troop-{run}-{cell}-{role}"


def backup_name(run: str, cell: str, role: str) -> str:
    """Returns the name of the group that launches missing spot nodes on demand. It is unique: roles have no dots."""
    return f"{fleet_name(run, cell, role)}.backup"


def security_group_name(run: str, cell: str) -> str:
    """Returns the name of the security group of all nodes of a cell. That of one role, for the targets that only this
    role can reach, has the fleet's name.
    """
    return f"troop-{run}-{cell}"


def queue_name(run: str, cell: str) -> str:
    """Returns the name of the queue of a fleet's tasks."""
    return f"troop-{run}-{cell}"


def dead_queue_name(run: str, cell: str) -> str:
    """Returns the name of the queue of a fleet's dead letters."""
    return f"{queue_name(run, cell)}-dead"


def tags(deployment: str, run: str, cell: str, expires_at: str) -> dict[str, str]:
    """Returns the tags of everything a cell creates. Resources of one fleet also carry :data:`FLEET_TAG`."""
    return {DEPLOYMENT_TAG: deployment, RUN_TAG: run, CELL_TAG: cell, EXPIRES_TAG: expires_at}


def fleet_tags(common: Mapping[str, str], role: str) -> dict[str, str]:
    return {**common, FLEET_TAG: role, "Name": fleet_name(common[RUN_TAG], common[CELL_TAG], role)}


def run_prefix(run: str) -> str:
    return f"{RUNS_PREFIX}{run}/"


def data_prefix(run: str, cell: str) -> str:
    """Returns the beginning of the keys of objects that a cell's scripts create to measure with."""
    return f"{DATA_PREFIX}{run}/{cell}/"


def report_key(run: str) -> str:
    """Returns the key of an ended run's HTML report."""
    return run_prefix(run) + REPORT_HTML


def definition_key(run: str) -> str:
    """Returns the key of the accepted benchmark, see :mod:`troop.bench.definition.definition`."""
    return f"{RUNS_PREFIX}{run}/definition.json"


def plan_key(run: str) -> str:
    """Returns the key of the run's plan, see :mod:`troop.bench.definition.plan`."""
    return f"{RUNS_PREFIX}{run}/plan.json"


def file_key(run: str, name: str) -> str:
    """Returns the key of a file from the benchmark's folder."""
    return f"{RUNS_PREFIX}{run}/files/{name}"


def agent_key(run: str) -> str:
    return f"{RUNS_PREFIX}{run}/agent.pyz"


def cells_key(run: str) -> str:
    """Returns the key of the list of cells that the workflow's map state reads."""
    return f"{RUNS_PREFIX}{run}/cells.json"


def instance_types_key(run: str) -> str:
    """Returns the key of the facts of the run's instance types."""
    return f"{RUNS_PREFIX}{run}/instance-types.json"


def estimate_key(run: str) -> str:
    """Returns the key of the estimate at admission, see :mod:`troop.bench.admission.estimate`."""
    return f"{RUNS_PREFIX}{run}/estimate.json"


def image_key(run: str, name: str) -> str:
    """Returns the key of the machine image that all cells use, even if AWS publishes a newer one.

    Args:
        name: an architecture for the default image, or the image in the file: an id, or the name of a parameter.
    """
    if name.startswith("/"):
        name = hashlib.sha256(name.encode()).hexdigest()[:16]
    return f"{RUNS_PREFIX}{run}/images/{name}.json"


def load_balancers_key(run: str) -> str:
    """Returns the key of the load balancers that a run's targets name, as its admission has looked them up."""
    return f"{RUNS_PREFIX}{run}/load-balancers.json"


def artifact_key(sha256: str) -> str:
    """Returns the key of an artifact, by its content: runs share artifacts."""
    return f"{ARTIFACTS_PREFIX}{sha256}"


def cell_prefix(run: str, cell: str) -> str:
    return f"{RUNS_PREFIX}{run}/{cell}/"


def cell_definition_key(run: str, cell: str) -> str:
    """Returns the key of the cell's benchmark, with its scale step and combination applied."""
    return f"{cell_prefix(run, cell)}definition.json"


def choices_key(run: str, cell: str) -> str:
    """Returns the key of what an attempt buys if earlier ones found no capacity, see
    :mod:`troop.bench.fleets.choices`.
    """
    return f"{cell_prefix(run, cell)}choices.json"


def roster_key(run: str, cell: str) -> str:
    return f"{cell_prefix(run, cell)}roster.json"


def targets_key(run: str, cell: str, role: str) -> str:
    """Returns the key of what the nodes of a role can reach, for their scripts."""
    return f"{cell_prefix(run, cell)}targets/{role}.json"


def barrier_key(run: str, cell: str, step: str) -> str:
    """Returns the key of a step's barrier, which only the workflow writes."""
    return f"{cell_prefix(run, cell)}barriers/{step}.json"


def nodes_prefix(run: str, cell: str) -> str:
    """Returns the prefix of registrations, which are named ``<role id>:<instance id>.json``.

    That is the session of an instance (``aws:userid``), so IAM allows a node only its own names. Runs of earlier
    versions have no role id. The same holds for summaries, output and notices.
    """
    return f"{cell_prefix(run, cell)}nodes/"


def phase_prefix(run: str, cell: str, step: str) -> str:
    """Returns the prefix of a step's summaries, which are named ``<role id>:<instance id>.json``."""
    return f"{cell_prefix(run, cell)}phases/{step}/"


def output_prefix(run: str, cell: str, step: str) -> str:
    """Returns the prefix of the nodes' output in a step, named ``<role id>:<instance id>.log.gz``."""
    return f"{cell_prefix(run, cell)}output/{step}/"


def console_key(run: str, cell: str, instance_id: str) -> str:
    """Returns the key of the console output of a node that never registered, or was lost."""
    return f"{output_prefix(run, cell, BOOT)}{instance_id}.log.gz"


def faults_prefix(run: str, cell: str, step: str) -> str:
    """Returns the prefix of what victims do in a step, named ``<role id>:<instance id>.json``."""
    return f"{cell_prefix(run, cell)}faults/{step}/"


def unit_fault_key(run: str, cell: str, step: str, number: int) -> str:
    """Returns the key of the answer to a request to hit a unit.

    Args:
        number: of the fault in its phase, from 1.
    """
    return f"{cell_prefix(run, cell)}unit-faults/{step}/{number}.json"


def queue_key(run: str, cell: str) -> str:
    """Returns the key of what workers must know of their queue."""
    return f"{cell_prefix(run, cell)}queue.json"


def orders_key(run: str, cell: str) -> str:
    """Returns the key of what the workflow wants the nodes of a fleet to do."""
    return f"{cell_prefix(run, cell)}orders.json"


def reports_prefix(run: str, cell: str) -> str:
    """Returns the prefix of the nodes' reports of their health, which are named ``<role id>:<instance id>.json``."""
    return f"{cell_prefix(run, cell)}reports/"


def work_results_prefix(run: str) -> str:
    """Returns the prefix of the results that workers deliver; they stay as long as those of benchmarks."""
    return f"{run_prefix(run)}results/"


def work_result_key(run: str, task: str) -> str:
    """Returns the key of the result of a task, of which the first one stands."""
    return work_results_prefix(run) + task


def live_prefix(run: str, cell: str) -> str:
    """Returns the prefix of running summaries, which are named ``<role id>:<instance id>.json``."""
    return f"{cell_prefix(run, cell)}live/"


def live_key(run: str) -> str:
    """Returns the key of the last merge of a run's running summaries, see :mod:`troop.bench.records.live_view`."""
    return run_prefix(run) + LIVE


def interruptions_prefix(run: str, cell: str) -> str:
    """Returns the prefix of spot interruption notices, which are named ``<role id>:<instance id>.json``."""
    return f"{cell_prefix(run, cell)}interruptions/"


def replaced_prefix(run: str, cell: str) -> str:
    """Returns the prefix of the records of nodes that were replaced during the boot, each ``<instance id>.json``."""
    return f"{cell_prefix(run, cell)}replaced/"


def doubts_key(run: str, cell: str) -> str:
    """Returns the key of the nodes that were missing at the last check, and since when."""
    return f"{cell_prefix(run, cell)}doubts.json"


def point_key(run: str, cell: str, step: str) -> str:
    """Returns the key of one point's merged results, which :func:`results_key` also contains at the end."""
    return f"{cell_prefix(run, cell)}points/{step}.json"


def results_key(run: str, cell: str) -> str:
    """Returns the key of the cell's merged results."""
    return f"{cell_prefix(run, cell)}results.json"


def report_part_key(run: str, cell: str) -> str:
    """Returns the key of the cell's part of the run's report."""
    return f"{cell_prefix(run, cell)}report-part.json"


def node_of(key: str) -> str:
    """Returns the instance id in the key of a node's object."""
    return key.rsplit("/", 1)[-1].split(".", 1)[0].rpartition(":")[2]
