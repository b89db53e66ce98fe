"""One browser for all tests of pages, and one worker for those that are not end to end. Property tests have the same
examples at each run on every machine, so that others find a failure again, and no deadline on a machine that is busy.
``make test-all`` tries ten times as many.
"""

from __future__ import annotations

import gc
import os
import tempfile
import time
import zoneinfo
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from _pytest import runner
from hypothesis import HealthCheck, settings
from playwright.sync_api import Browser, expect
from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController

from local.pictures import camera
from tests.patience import PAGE_PATIENCE_MS

settings.register_profile(
    "troop",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=500 if os.environ.get("TROOP_EXHAUSTIVE") else 50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("check", settings.get_profile("troop"), max_examples=10)
settings.load_profile("troop")

# Workers inherit it. Whole runs are synthesised for this moment, and again for another hour.
os.environ.setdefault("TROOP_TESTS_STARTED", datetime.now(UTC).isoformat())

# Half of a synthesis is the CDK validating its template: the one in tests/infra that is made as users do has it.
os.environ["CDK_VALIDATION"] = "false"


@cache
def _loader(data_path: str | None) -> Any:
    return _create_loader(data_path)


def _shared_loader(data_path: str | None = None) -> Any:
    """Every session would read and parse the models of its services anew, as each test of the command has one."""
    loader = _loader(data_path)
    loader.search_paths[:] = dict.fromkeys(loader.search_paths)  # each session of boto3 adds boto3's own
    return loader


_create_loader = botocore.session.create_loader
botocore.session.create_loader = _shared_loader  # type: ignore[assignment]

zoneinfo.reset_tzpath(to=())  # what tests expect of a zone is what the pinned package says, not the machine

gc.set_threshold(50_000, 20, 20)  # collections took 8 % of the time of handlers' tests


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()) and not item.nodeid.startswith("tests/e2e/"):
            item.add_marker(pytest.mark.xdist_group("chromium"))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Gives workers groups and whole files: pytest-xdist visits all units of a worker whenever a test ends, which takes
    it long with single tests. Also, fixtures of a module are then created once.
    """
    scheduler = LoadGroupScheduling(config, log)
    split = scheduler._split_scope
    scheduler._split_scope = lambda nodeid: split(nodeid).partition("::")[0]
    return scheduler


_STARTED: list[WorkerController] = []


def pytest_configure_node(node: WorkerController) -> None:
    """Starts the other workers when the first one has imported all tests. Together, each would compile all modules."""
    mark = Path(tempfile.gettempdir(), f"imported-{node.workerinput['testrunuid']}")
    node.workerinput["imported"] = str(mark)
    _STARTED.append(node)
    while len(_STARTED) > 1 and not mark.exists() and not _STARTED[0].channel.isclosed():
        time.sleep(0.1)


def pytest_collection_finish(session: pytest.Session) -> None:
    gc.freeze()  # no collection visits imported modules again
    if worker := getattr(session.config, "workerinput", None):
        Path(worker["imported"]).touch()


def pytest_unconfigure() -> None:
    for node in _STARTED:
        Path(node.workerinput["imported"]).unlink(missing_ok=True)


def _roomy(call: Callable[..., bool], *arguments: Any) -> bool:
    return call(*arguments)


_roomy.__code__ = _roomy.__code__.replace(co_stacksize=140_000)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """Runs the test above a frame of more than a mebibyte, so that its own frames have most of another.

    Python allocates frames in chunks of 16 KiB, and doubles a chunk until it holds its first frame. A loop whose calls
    cross the end of a chunk maps and unmaps one at each pass: a fifth of the time of handlers' tests.
    """
    return _roomy(runner.pytest_runtest_protocol, item, nextitem)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium without a window: one for a worker, as there can be only one Playwright in a thread."""
    if camera.chromium_path() is None:
        pytest.fail("Chromium is missing: pages are tested in it. `make browser` installs it; TROOP_CHROMIUM names one")
    expect.set_options(timeout=PAGE_PATIENCE_MS)
    with camera.browser() as chromium:
        yield chromium
