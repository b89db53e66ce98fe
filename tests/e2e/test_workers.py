"""Real workers of a fleet with a queue, by the command: they grow, are lost, heal and drain, and no task is lost.

Hundreds of simulated nodes are in test_fleet.py, and thousands of tasks in perf/lost_workers.py.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from local.worker_story import SHORT, Story, Workers
from local.workers import picture, problems, summary
from tests.e2e.benches import NOTHING, left
from tests.e2e.conftest import Deployment
from tests.e2e.roles import allowed, is_of_queues, role_name, role_of
from troop.bench.definition import names
from troop.shared.tags import RUN_TAG

CELL = names.cell_id(1)


@pytest.fixture(scope="module")
def story(smoke: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Story:
    return Workers(smoke.account, smoke.outputs, tmp_path_factory.mktemp("workers"), SHORT, print, smoke.name).tell()


def reports(deployment: Deployment, fleet: str) -> list[dict[str, Any]]:
    """The last reports of all nodes that the fleet has had."""
    s3, bucket = deployment.account.client("s3"), deployment.outputs["ResultsBucket"]
    listed = s3.list_objects_v2(Bucket=bucket, Prefix=names.reports_prefix(fleet, CELL))["Contents"]
    return [json.load(s3.get_object(Bucket=bucket, Key=one["Key"])["Body"]) for one in listed]


def test_every_task_has_one_result_although_nodes_are_lost(story: Story) -> None:
    assert problems(story, SHORT) == []
    work = story.detail["work"]
    counts = (work["submitted"], work["done"], work["waiting"], work["in_work"], work["dead"])
    assert counts == (SHORT.tasks + SHORT.poison, SHORT.tasks, 0, 0, SHORT.poison)
    assert len({result["by"] for result in story.results.values()}) >= SHORT.most, "all nodes have worked"


def test_a_spot_notice_reaches_workers_before_the_node_ends(smoke: Deployment, story: Story) -> None:
    (last,) = [report for report in reports(smoke, story.fleet) if report["notice"]]
    assert last["work"]["held"] == 0, "its tasks were handed back"


def test_workers_that_are_killed_or_hang_are_restarted(story: Story) -> None:
    assert {repair["do"] for repair in story.detail["repairs"]} == {"restart"}
    assert story.healed.keys() == {"killed", "hung"}


def test_the_fleet_grows_with_its_work_and_shrinks_to_nothing(story: Story) -> None:
    assert story.most_nodes == SHORT.most
    (role,) = story.detail["fleet"]["roles"]
    assert (role["desired"], role["in_service"], story.detail["fleet"]["scaled_by"]) == (0, 0, "scale")


def test_the_story_is_drawn_and_summed_up(story: Story) -> None:
    drawn = picture(story)
    assert all(text in drawn for text in ("a worker hangs: …", "Troop restarts the worker of …", "has drained</text>"))
    assert f"{SHORT.tasks} results, each stored once" in summary(story, SHORT)


def test_nodes_use_their_permissions_for_the_queue(smoke: Deployment, story: Story) -> None:
    role = role_name(smoke, "NodesRole")
    decisions = [one for one in smoke.account.decisions() if role_of(one["caller"]) == role]
    denied = [one for one in decisions if one["decision"] != "Allow" and story.fleet in one["resource"]]
    assert denied == [], "other fleets of this deployment try what they may not"
    used = {one["action"].lower() for one in decisions}
    assert {action for action in allowed(smoke)[role] if is_of_queues(action) and action.lower() not in used} == set()


def test_nothing_is_left_of_the_fleet_but_its_results(smoke: Deployment, story: Story) -> None:
    assert left(smoke.account, {RUN_TAG: story.fleet}) == NOTHING
    view = smoke.view.api.get(f"fleets/{story.fleet}").body
    assert [one for one in view["resources"] if one["gone_at"] is None] == []
    assert {"endpoint", "queue"} <= {one["kind"] for one in view["resources"]}
    listed = json.loads(smoke.command("fleet", "results", story.fleet, "--limit", "1000", "--json").stdout)
    assert len(listed["results"]) == SHORT.tasks
