"""The wheel: it installs the command alone, under one name, and needs no checkout and nothing that it does not name."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from infra import ROOT
from infra.store import BUILD, build_folder
from release.relocation import PACKAGE, RelocationError, relocate
from tests.patience import PATIENCE

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

BLOCKED = """
import importlib.metadata as metadata, re, sys

def names(name, seen):
    for line in metadata.distribution(name).requires or []:
        needed = re.match(r"[\\w.-]+", line)[0]
        key = re.sub(r"[-_.]+", "-", needed).lower()
        if "extra ==" not in line and key not in seen:
            seen.add(key)
            try:
                names(needed, seen)
            except metadata.PackageNotFoundError:
                pass  # for another system
    return seen

allowed = names("troop-aws", {"troop-aws"})
owners = metadata.packages_distributions()

class Blocker:
    def find_spec(self, name, path=None, target=None):
        mine = {re.sub(r"[-_.]+", "-", owner).lower() for owner in owners.get(name.partition(".")[0], [])}
        if mine and not mine & allowed:
            raise ImportError(f"{name} is not among the dependencies of the wheel")

sys.meta_path.insert(0, Blocker())
"""
"""Makes the packages that the wheel does not require impossible to import, as where only the wheel is installed."""


@dataclass(frozen=True)
class Installed:
    """The wheel in a virtual environment of its own, beside the packages of this one."""

    folder: Path
    wheel: Path
    empty: Path

    def run(self, *words: str, folder: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        """Runs a program of the environment in an empty folder."""
        clean = {"PATH": os.defpath, "HOME": str(self.empty), "AWS_EC2_METADATA_DISABLED": "true", "COLUMNS": "200"}
        return subprocess.run(
            [str(self.folder / "bin" / words[0]), *words[1:]],
            cwd=folder or self.empty,
            env=clean | environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def python(self, program: str) -> str:
        done = self.run("python", "-c", program)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    _quietly(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder))
    (wheel,) = folder.glob("*.whl")
    _quietly(sys.executable, "-m", "venv", "--without-pip", str(folder / "venv"))
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder / "venv")}))
    (site / "packages.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    python = str(folder / "venv" / "bin" / "python")
    _quietly(*pip, "--python", python, "install", "--no-deps", "--no-index", "--no-compile", str(wheel))
    (folder / "empty").mkdir()
    return Installed(folder / "venv", wheel, folder / "empty")


def _quietly(*command: str) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_wheel_installs_one_package_and_one_command(installed: Installed) -> None:
    with zipfile.ZipFile(installed.wheel) as archive:
        names = archive.namelist()
        (scripts,) = (archive.read(name).decode() for name in names if name.endswith("entry_points.txt"))
    assert {name.partition("/")[0] for name in names} == {PACKAGE, f"{PACKAGE}-{PROJECT['version']}.dist-info"}
    assert re.findall(r"^(\S+) =", scripts, re.MULTILINE) == ["troop"]
    assert not [name for name in names if "__pycache__" in name or "/build/" in name]


def test_the_command_works_in_an_empty_folder(installed: Installed) -> None:
    version = installed.run("troop", "--version")
    assert (version.returncode, version.stdout) == (0, f"troop {PROJECT['version']}\n")
    helps = (("--help",), ("bench", "--help"), ("policy", "diff", "--help"))
    shown = installed.python(EACH.format(commands=helps))
    assert shown.count("exit code 0\n") == shown.count("Usage: ") == len(helps), shown
    line: dict[str, Any] = {"_TROOP_COMPLETE": "complete_bash", "COMP_WORDS": "troop bench val", "COMP_CWORD": "2"}
    assert installed.run("troop", **line).stdout.split() == ["validate"]


def test_without_credentials_the_command_says_what_to_do(installed: Installed) -> None:
    shown = installed.run("troop", "groups", "--region", "eu-west-1")
    assert shown.returncode == 3
    assert "no AWS credentials" in shown.stderr
    assert "Traceback" not in shown.stderr


EACH = f"""
import sys
from {PACKAGE}.__main__ import main
sys.stderr = sys.stdout
for words in {{commands}}:
    sys.argv[1:] = words
    try:
        main()
    except SystemExit as ended:
        print("exit code", ended.code or 0)
"""
"""Runs commands in one process, as a process for each takes a second. Errors are on its standard output, too."""


def test_the_catalogue_comes_with_the_command(installed: Installed) -> None:
    listed = installed.run("troop", "bench", "list", "--catalogue", "--json")
    names = sorted(folder.parent.name for folder in (ROOT / "benchmarks").glob("*/benchmark.yaml"))
    assert sorted(re.findall(r'"file": "(.+)"', listed.stdout)) == names
    commands = [*(("bench", "validate", name) for name in names), ("fleet", "validate", "worker")]
    checked = installed.python(EACH.format(commands=commands))
    assert re.findall(r"^exit code (.+)$", checked, re.MULTILINE) == ["0"] * len(commands), checked
    assert len(re.findall(r": valid", checked)) == len(commands), checked


def test_a_benchmark_is_copied_out_of_the_catalogue(installed: Installed) -> None:
    copy = ("bench", "copy", "disk-io", "my-disks")
    commands = (copy, ("bench", "validate", "my-disks"), copy, ("bench", "copy", "../cli"))
    shown = installed.python(EACH.format(commands=commands))
    here = {path.name for path in (installed.empty / "my-disks").iterdir()}
    assert here == {path.name for path in (ROOT / "benchmarks" / "disk-io").iterdir() if path.is_file()}
    assert re.findall(r"^exit code (.+)$", shown, re.MULTILINE) == ["0", "0", "2", "2"], shown
    _, valid, again, unknown, _ = re.split(r"^exit code \d\n", shown, flags=re.MULTILINE)
    assert ": valid" in valid
    assert "exists already" in again
    assert "must be one of" in unknown


def test_the_command_needs_only_what_the_wheel_requires_and_nothing_of_a_checkout(installed: Installed) -> None:
    program = BLOCKED + (
        "import pkgutil\n"
        f"import {PACKAGE}.cli as cli\n"
        "for module in pkgutil.walk_packages(cli.__path__, cli.__name__ + '.'):\n"
        "    if not module.name.endswith('__main__'):\n"
        "        __import__(module.name)\n"
        f"from {PACKAGE}.troop.bench.file import read, read_fleet\n"
        f"from {PACKAGE}.troop.report import html, assets, build\n"
        "assert len(assets.chart_script()) > 100_000\n"
        "for module in list(sys.modules.values()):\n"
        "    print(getattr(module, '__file__', None) or '')\n"
    )
    files = [Path(line) for line in installed.python(program).splitlines() if line]
    assert len([file for file in files if file.is_relative_to(installed.folder)]) > 100
    packages = Path(sysconfig.get_path("purelib"))
    assert [file for file in files if file.is_relative_to(ROOT) and not file.is_relative_to(packages)] == []


def test_generators_of_documents_stay_in_the_checkout(installed: Installed) -> None:
    target = (ROOT / "Makefile").read_text().partition("\nopenapi:")[2].partition("\n\n")[0]
    generators = set(re.findall(r"python -m infra\.(\w+)", target))
    assert {"openapi", "reference_doc"} <= generators
    with zipfile.ZipFile(installed.wheel) as wheel:
        assert not {f"{PACKAGE}/infra/{name}.py" for name in generators} & set(wheel.namelist())


def test_every_requirement_has_a_range() -> None:
    """uv.lock proves that it holds the version that is tested."""
    every = [*PROJECT["dependencies"], *(line for extra in PROJECT["optional-dependencies"].values() for line in extra)]
    assert [line for line in every if not Requirement(line).specifier] == []


FOREIGN = """
import json, sys
sys.path.insert(0, ".")
import infra, troop, handlers, cli  # what the app itself may have under these names
assert infra.OWN and troop.OWN and handlers.OWN and cli.OWN
import aws_cdk as cdk
from troop_aws.cdk import SettingsError, TroopStack

app = cdk.App(outdir="out", context={"aws:cdk:enable-path-metadata": True})  # as the CLI asks for them
stack = TroopStack(app, "Troop")
try:
    TroopStack(app, "Wrong", probability=2)
except SettingsError as error:
    assert "probability is 2: must be a number from 0 to 1" in str(error), error
else:
    raise AssertionError
outputs = [
    stack.api_url, stack.act_now_topic.topic_arn, stack.warning_topic.topic_arn, stack.news_topic.topic_arn,
    stack.event_bus.event_bus_name, stack.events_table.table_name, stack.group_tags_table.table_name,
    stack.decisions_table.table_name, stack.chaos_machine.state_machine_arn, stack.results_bucket.bucket_name,
]
app.synth()
assert infra is sys.modules["infra"] and troop is sys.modules["troop"]
print(json.dumps(stack.resolve(outputs)))
"""


def test_a_foreign_app_has_the_resources_of_this_one(
    installed: Installed, template: dict[str, Any], tmp_path: Path
) -> None:
    """With packages of its own under Troop's names, and without Troop's feature flags."""
    for name in ("infra", "troop", "handlers", "cli"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("OWN = True\n")
    (tmp_path / "app.py").write_text(FOREIGN)
    cache = tmp_path / "cache"
    cache.symlink_to(BUILD)  # what a first synthesis has fetched
    environment = {
        "TROOP_BUILD": str(cache),
        "CDK_VALIDATION": "false",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(Path.home() / ".cache" / "aws" / "jsii" / "package-cache"),
    }
    done = installed.run("python", str(tmp_path / "app.py"), folder=tmp_path, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    foreign = json.loads((tmp_path / "out" / "Troop.template.json").read_text())
    differing = {
        name for name, own in template["Resources"].items() if _bare(foreign["Resources"].get(name)) != _bare(own)
    }
    assert differing == set()
    assert foreign["Resources"].keys() == template["Resources"].keys()
    assert foreign["Outputs"].keys() == template["Outputs"].keys()
    names = json.dumps(template["Resources"])
    refs = re.findall(r'"(?:Ref|Fn::GetAtt)": \[?"(\w+)"', done.stdout)
    assert len(set(refs)) >= 10
    assert all(f'"{name}"' in names for name in refs)


def _bare(resource: Any) -> Any:
    """Without what names the place in the tree of constructs."""
    return None if resource is None else {key: value for key, value in resource.items() if key != "Metadata"}


def test_an_installed_package_builds_in_the_users_cache(tmp_path: Path) -> None:
    assert build_folder(ROOT, {"TROOP_BUILD": "/elsewhere"}) == ROOT / ".build"
    assert build_folder(tmp_path, {"XDG_CACHE_HOME": "/caches"}) == Path("/caches/troop-aws")
    assert build_folder(tmp_path, {}) == Path.home() / ".cache" / "troop-aws"
    assert build_folder(tmp_path, {"TROOP_BUILD": "/elsewhere"}) == Path("/elsewhere")


MOVED: Mapping[str, str] = {
    "from cli.shared import show": "from troop_aws.cli.shared import show",
    "from infra import npm as packages": "from troop_aws.infra import npm as packages",
    "x = 1; from troop.faults import (\n  A,\n)": "x = 1; from troop_aws.troop.faults import (\n  A,\n)",
    "def later():\n    from agent.pack import pack": "def later():\n    from troop_aws.agent.pack import pack",
    "import troop.measure as measure": "import troop_aws.troop.measure as measure",
    "AT = 'cli.commands.why:why'": "AT = 'troop_aws.cli.commands.why:why'",
    "print('ü', end=''); AT = 'cli.app:main'": "print('ü', end=''); AT = 'troop_aws.cli.app:main'",
    "from . import cli": "from . import cli",
    "FORMAT = 'troop.report/1'": "FORMAT = 'troop.report/1'",
    "from troopers import cli": "from troopers import cli",
    "# from cli import show": "# from cli import show",
}


@pytest.mark.parametrize("source", MOVED)
def test_imports_are_moved(source: str) -> None:
    assert relocate(source, "x.py") == MOVED[source]
    ast.parse(MOVED[source])


@pytest.mark.parametrize(
    "source", ["import troop.measure", "from handlers.api import app", "import local.demo as demo"]
)
def test_import_that_cannot_be_relocated_is_refused(source: str) -> None:
    with pytest.raises(RelocationError, match=r"x\.py:2: "):
        relocate(f"\n{source}", "x.py")


def test_no_document_names_the_package_of_someone_else() -> None:
    documents = [
        ROOT / "README.md",
        ROOT / "CHANGELOG.md",
        *(ROOT / "docs").glob("*/*.md"),
        *(ROOT / "examples").rglob("*"),
    ]
    wrong = re.compile(r"(?:pip|pipx|uv|uvx)[ a-z]* (?:install|add|run) [^`\n]*(?<![/\w-])troop(?=[\s`'\"]|==|$)")
    assert [path.name for path in documents if path.is_file() and wrong.search(path.read_text())] == []
