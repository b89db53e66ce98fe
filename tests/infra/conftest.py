"""Synthesises few times, for it takes seconds: once as users do, and each set of settings once in this process.

Templates are stored in ``.build`` until a file changes that they depend on: see :mod:`tests.infra.results`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import aws_cdk as cdk
import pytest
from aws_cdk import assertions

from infra import ROOT
from infra.acknowledgements import check
from infra.bundling import bundle
from infra.release import COMMIT
from infra.settings import read_settings
from infra.stack import TroopStack
from infra.store import BUILD
from tests.infra.results import project_files, result, sources
from tests.patience import PATIENCE
from troop.shared.errors import SettingsError

CONTEXT: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text())["context"]
NEWS_BUS = "arn:aws:events:eu-central-1:111122223333:event-bus/troop-news"
NOBODY_LISTENS = "http://127.0.0.1:9"


@dataclass(frozen=True)
class Synthesised:
    """A synthesis by the CDK CLI: what it said, the folder it wrote, and the modes of the files in each asset."""

    output: str
    folder: Path
    assets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def read(self, name: str) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((self.folder / name).read_text())
        return document


@pytest.fixture(scope="session", autouse=True)
def no_commit() -> Iterator[None]:
    """Templates that are stored do not change with a commit that changes no source."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(COMMIT, "")
        yield


@pytest.fixture(scope="session")
def cli_synth(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    """``cdk synth`` in a clone without ``node_modules``, without credentials, in an empty home, with no way out, with a
    private umask; validated.
    """
    folder = result("cli", sources(), create=lambda partial: _run_cli(partial, tmp_path_factory))
    return Synthesised(**json.loads((folder / "outcome.json").read_text()), folder=folder)


def _run_cli(partial: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder, clone = tmp_path_factory.mktemp("cli"), tmp_path_factory.mktemp("clone")
    for name in project_files():
        if (ROOT / name).is_file():  # one that is removed is still listed
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, clone / name)
    bundle("lambda", "{}")
    (clone / ".build").symlink_to(BUILD)  # what a first synthesis has fetched
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path_factory.mktemp("home")),
        # Where jsii has unpacked the library before: unpacking again into the new home takes many seconds.
        "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(Path.home() / ".cache" / "aws" / "jsii" / "package-cache"),
        **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), NOBODY_LISTENS),
    }
    command = [str(ROOT / "node_modules" / ".bin" / "cdk"), "synth", "--quiet", "--strict", "--output", str(folder)]
    done = subprocess.run(
        command, cwd=clone, env=environment, umask=0o077, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (clone / "node_modules").exists()
    assets = {path.name: _modes(path) for path in folder.iterdir() if path.name.startswith("asset.")}
    outcome = {"output": done.stdout + done.stderr, "assets": assets}
    _copy_documents(folder, partial)
    (partial / "outcome.json").write_text(json.dumps(outcome))


def _modes(archive: Path) -> dict[str, int]:
    return {entry.filename: entry.external_attr >> 16 for entry in ZipFile(archive).infolist()}


def _copy_documents(assembly: Path, folder: Path) -> None:
    """Copies templates and manifests, without the assets, which are large."""
    for document in assembly.glob("*.json"):
        shutil.copy(document, folder)


@pytest.fixture(scope="session")
def template(cli_synth: Synthesised) -> dict[str, Any]:
    """The template of the default settings."""
    return cli_synth.read("Troop.template.json")


def stack_of(app: cdk.App, **settings: Any) -> TroopStack:
    """A stack with the settings in the app's context, save those given (without prefix)."""
    context = app.node.get_all_context() | {f"troop:{key}": value for key, value in settings.items()}
    return TroopStack(app, read_settings(context))


@pytest.fixture(scope="session")
def two_stacks(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    """Two throw-away deployments in one app: ``Blue`` with several calendars, two zones, two buckets and some
    images for benchmarks, ``Green`` as it is.
    """
    folder = result("two", sources(), create=lambda partial: _synthesise_two(partial, tmp_path_factory.mktemp("two")))
    return Synthesised("", folder)


def _synthesise_two(partial: Path, folder: Path) -> None:
    app = cdk.App(context=CONTEXT, outdir=str(folder))
    check(
        stack_of(
            app,
            deployment="Blue",
            retain_data="false",
            leashed="false",
            tick_minutes="5",
            api_access_logs="true",
            calendars=json.dumps(CALENDARS),
            zones="2",
            allowed_buckets="my-data,logs.example.com",
            allowed_images="ami-0123456789abcdef0,/images/*,/aws/service/canonical/*",
            allowed_snapshots="snap-0123456789abcdef0",
            allowed_targets="10.20.0.0/16:443",
            own_data="true",
            queues="true",
            inside_instances="true",
            under_load="true",
        )
    )
    wiki = "https://wiki.example.com/troop"
    check(
        stack_of(
            app,
            deployment="Green",
            retain_data=False,
            log_retention_days=7,
            runbook_url=wiki,
            inside_instances="true",
            under_load="true",
        )
    )
    app.synth()
    _copy_documents(folder, partial)


@pytest.fixture(scope="session")
def blue(two_stacks: Synthesised) -> dict[str, Any]:
    return two_stacks.read("Blue.template.json")


@pytest.fixture(scope="session")
def green(two_stacks: Synthesised) -> dict[str, Any]:
    return two_stacks.read("Green.template.json")


@pytest.fixture(scope="session")
def synthesised() -> Callable[..., dict[str, Any]]:
    """The template of such settings, which AwsSolutions has nothing to say against."""

    def synthesise(**settings: Any) -> dict[str, Any]:
        context = json.dumps(CONTEXT | {f"troop:{key}": value for key, value in settings.items()}, sort_keys=True)
        folder = result("stack", sources(), context, create=lambda partial: _synthesise(partial, settings))
        template: dict[str, Any] = json.loads((folder / "template.json").read_text())
        return template

    return synthesise


@pytest.fixture(scope="session")
def inside(synthesised: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    """The template of the default settings, with faults inside instances."""
    return synthesised(inside_instances=True)


@pytest.fixture(scope="session")
def whole(synthesised: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    """The template of the default settings, with all that settings add to it."""
    return synthesised(inside_instances=True, under_load=True, news_bus=NEWS_BUS)


def _synthesise(partial: Path, settings: Mapping[str, Any]) -> None:
    stack = stack_of(cdk.App(context=CONTEXT), **settings)
    check(stack)
    (partial / "template.json").write_text(json.dumps(assertions.Template.from_stack(stack).to_json()))


SHARED_CALENDAR = "arn:aws:ssm:eu-central-1:111122223333:document/shared"
"""An ARN that the settings give."""

CALENDARS: Mapping[str, Any] = {
    "default": CONTEXT["troop:calendars"]["default"],
    "tel-aviv": {
        "time_zone": "Asia/Jerusalem",
        "weekdays": ["SUN", "MON", "TUE", "WED", "THU"],
        "open": "09:30",
        "close": "15:10",
        "country": "IL",
        "change_calendar": "prod",
    },
    "night": {
        "time_zone": "Europe/Vienna",
        "open": "22:00",
        "close": "24:00",
        "change_calendar": SHARED_CALENDAR,
    },
}


@pytest.fixture
def refused() -> Callable[..., str]:
    """What the settings say to a value: the message of the refusal."""

    def refuse(**settings: Any) -> str:
        context = CONTEXT | {f"troop:{key}": value for key, value in settings.items()}
        with pytest.raises(SettingsError) as error:
            read_settings(context)
        return str(error.value)

    return refuse


SHARED = (
    *(
        "cli_synth",
        "two_stacks",
        "synthesised",
        "unacknowledged",
        "stack",
        "template",
        "inside",
        "whole",
        "blue",
        "green",
    ),
    "installed",
)
"""Fixtures that take seconds to make."""


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keeps tests that share a synthesis on one worker, so that it is made once (``--dist loadgroup``)."""
    for item in (item for item in items if item.nodeid.startswith(("tests/infra/", "tests/aws_facts/"))):
        fixtures = list(getattr(item, "fixturenames", ()))
        fixtures += getattr(getattr(item, "callspec", None), "params", {}).values()  # fixtures may be parameters, too
        if any(one in fixtures for one in SHARED):
            item.add_marker(pytest.mark.xdist_group("synth"))
