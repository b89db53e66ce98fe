"""Reads and checks a benchmark file and the files beside it, without a deployment."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from cli.shared import safe_files, yaml_files
from cli.shared.errors import CliError, Exit
from cli.shared.safe_files import OutsideError
from troop.bench.admission.admission import LARGEST_FILES, MOST_FILES
from troop.bench.definition.definition import Artifact, Benchmark
from troop.bench.definition.plan import Plan, sole
from troop.bench.definition.problems import BadBenchmarkError, Problem, and_more

if TYPE_CHECKING:
    from troop.bench.file.read import ReadFile

CATALOGUE = Path(__file__).resolve().parents[2] / "benchmarks"
"""The folder of benchmarks, in a checkout and in an installed command."""
FLEETS = CATALOGUE.with_name("fleets")
NAME = "benchmark.yaml"
FLEET_NAME = "fleet.yaml"
_IN_CATALOGUE = re.compile(r"[a-z0-9-]+")

_OPTIONS = {"set": "--set", "size": "--size"}
"""Options of the command line, by the first step of a problem's place."""


S3 = "s3://"
_PAGE = b'<meta name="generator" content="Troop">'
"""The mark in the first bytes of every page that Troop writes."""
_HEAD = 1024

_FETCHED = ("https://", S3)
"""The beginnings of the sources that are fetched."""

MOST_FILES_SHOWN = 30
"""Names of copied files in a message."""


@dataclass(frozen=True)
class LocatedProblem:
    """A problem and its line in the file.

    Attributes:
        line: counts from 1; None for a value from the command line.
    """

    file: str
    line: int | None
    problem: Problem

    def __str__(self) -> str:
        option, inner = _OPTIONS.get(str(self.problem.place[0]) if self.problem.place else ""), self.problem
        if option:
            key = ".".join(map(str, inner.place[1:]))
            return f"{option}{' ' + key if key else ''} {inner.message}: must be {inner.allowed}"
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {inner}"

    def as_json(self) -> dict[str, Any]:
        inner = self.problem
        return {"line": self.line, "where": inner.where, "message": inner.message, "allowed": inner.allowed}


class WrongFileError(CliError):
    """A file with problems; the message has one line for each.

    Attributes:
        problems: the first problems, at most :data:`MOST_PROBLEMS`.
        more: the number of further problems.
    """

    def __init__(self, located: Iterable[LocatedProblem], code: Exit = Exit.USAGE) -> None:
        problems = list(located)
        self.problems, self.more = problems[:MOST_PROBLEMS], max(0, len(problems) - MOST_PROBLEMS)
        more = and_more(len(problems), MOST_PROBLEMS)
        super().__init__(code, "\n".join(filter(None, [*map(str, self.problems), more])))


MOST_PROBLEMS = 50
"""Problems of a file that a message lists."""


@dataclass(frozen=True)
class Source:
    """A benchmark or standing fleet as written in its file.

    Attributes:
        written: the file with line numbers.
        document: the file's content, as the API accepts it.
        files: contents of the files beside it, by name.
        benchmark: the definition after size and changes.
        plan: the cells of a run.
    """

    path: Path
    written: yaml_files.Document
    document: Mapping[str, Any]
    files: Mapping[str, bytes]
    benchmark: Benchmark
    plan: Plan

    def artifacts(self) -> list[Artifact]:
        """Lists the artifacts of all cells, each content once; local files first, as their problems show at once."""
        by_sha256 = {a.sha256: a for cell in self.plan.cells for a in cell.benchmark.artifacts}
        return sorted(by_sha256.values(), key=lambda artifact: not is_local(artifact))

    def sizes(self) -> dict[str, int]:
        """Returns the sizes in bytes of the files that are copied to nodes, by name."""
        return {name: len(content) for name, content in sorted(self.files.items())}

    def copied(self) -> str:
        """Describes the files that are copied to nodes; of many files only the largest."""
        sizes = self.sizes()
        if not sizes:
            return "no files are copied to nodes"
        largest = sorted(sizes, key=lambda name: -sizes[name])[:MOST_FILES_SHOWN]
        names = ", ".join(f"{name} ({size:,} bytes)" for name, size in sizes.items() if name in largest)
        more = f" and {len(sizes) - len(largest)} more" if len(sizes) > len(largest) else ""
        return f"copied to nodes, {sum(sizes.values()):,} bytes in all: {names}{more}"

    def encoded(self) -> dict[str, str]:
        """Returns the files beside the benchmark file in base64, as the API accepts them."""
        return {name: base64.b64encode(content).decode() for name, content in self.files.items()}

    def refused(self, problems: Iterable[Problem]) -> WrongFileError:
        """Returns the error for problems that the deployment has found."""
        return WrongFileError(_locate(self.path, self.written, problems), Exit.REFUSED)


def is_local(artifact: Artifact) -> bool:
    """Checks whether an artifact's source is a file of this machine: everything that Troop does not fetch."""
    return not artifact.source.startswith(_FETCHED)


def load(path: Path, size: str | None = None, changes: Mapping[str, Any] | None = None) -> Source:
    """Loads a benchmark file and the files in its folder.

    Args:
        path: the file, or a folder with a ``benchmark.yaml``. A name that is not in the current folder can be that of a
            benchmark in the catalogue.
        size: one of the file's sizes.
        changes: values by key, from ``--set``.

    Raises:
        CliError: USAGE; a :class:`WrongFileError` for problems in the file.
    """
    from troop.bench.file.read import read_all  # here: pydantic is slow to import, and most commands do not need it

    return _load(path, NAME, lambda document, files: read_all(document, files, size, changes))


def load_fleet(path: Path, changes: Mapping[str, Any] | None = None) -> Source:
    """Loads a standing fleet's file and the files in its folder, like :func:`load`."""
    from troop.bench.file.read import ReadFile
    from troop.bench.file.read_fleet import read_fleet

    def read(document: Any, files: list[str]) -> ReadFile:
        fleet = read_fleet(document, files, changes)
        return ReadFile(fleet, sole(fleet))

    return _load(path, FLEET_NAME, read)


def _load(path: Path, name: str, read: Callable[[Any, list[str]], ReadFile]) -> Source:
    path = _file(path, name)
    if path.is_symlink():  # the files beside it are copied, so it must not lead to another folder
        with _opened(path.parent.resolve(), path.name):
            pass
    written = yaml_files.Document(yaml_files.read(path), str(path))
    document = written.values
    try:
        definition = read(document, [file.name for file in _beside(path)])
    except BadBenchmarkError as bad:
        raise WrongFileError(_locate(path, written, bad.problems)) from None
    if unclear := list(_unclear(written)):
        raise WrongFileError(_locate(path, written, unclear))
    files = _contents(path, definition.plan)
    copied = tuple(sorted(files))
    cells = tuple(replace(one, benchmark=replace(one.benchmark, files=copied)) for one in definition.plan.cells)
    benchmark, plan = replace(definition.benchmark, files=copied), replace(definition.plan, cells=cells)
    return Source(path, written, document, files, benchmark, plan)


def _file(path: Path, name: str) -> Path:
    """Returns the path of the file, also for its folder and for a name in the catalogue.

    Raises:
        CliError: USAGE; there is nothing of that name, or a standing fleet instead of a benchmark, or the reverse.
    """
    other, kind, command = (
        (FLEET_NAME, "a standing fleet", "troop fleet") if name == NAME else (NAME, "a benchmark", "troop bench")
    )
    if path.name == other or (path.is_dir() and not (path / name).exists() and (path / other).exists()):
        raise CliError(Exit.USAGE, f"{path} is {kind}: use `{command}` instead, see `{command} --help`")
    if path.is_dir():
        return path / name
    if path.exists() or not _IN_CATALOGUE.fullmatch(str(path)):
        return path
    if (known := in_catalogue(str(path), name)) is None:
        names = catalogue_names(name)
        near = get_close_matches(str(path), names, n=1)
        hint = f"did you mean {near[0]}?" if near else f"the catalogue has {', '.join(names)}"
        raise CliError(
            Exit.USAGE, f"there is no file or folder {path}, and the catalogue has nothing of that name: {hint}"
        )
    return known / name


def catalogue_names(file: str = NAME) -> list[str]:
    """Lists the benchmarks of the catalogue, or its fleets with ``file`` as :data:`FLEET_NAME`."""
    return sorted(path.parent.name for path in (CATALOGUE if file == NAME else FLEETS).glob(f"*/{file}"))


def in_catalogue(name: str, file: str = NAME) -> Path | None:
    """Returns the folder of a benchmark in the catalogue, or of a fleet with ``file`` as :data:`FLEET_NAME`."""
    if not _IN_CATALOGUE.fullmatch(name):
        return None
    folder = (CATALOGUE if file == NAME else FLEETS) / name
    return folder if (folder / file).is_file() else None


def assignments(words: Iterable[str]) -> dict[str, Any]:
    """Parses ``["parameters.threads=8"]`` into ``{"parameters.threads": 8}``. Values are YAML, but numbers of a version
    stay text: the id of a commit can look like one.

    Raises:
        CliError: USAGE.
    """
    values: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise CliError(Exit.USAGE, f"{word!r} is not an assignment: write --set KEY=VALUE")
        if key in values:
            raise CliError(Exit.USAGE, f"{key} is set twice")
        written = yaml_files.Document(value, f"the value of {key}") if value.strip() else None
        values[key] = written.values if written else ""
        if key == "version" and isinstance(values[key], (int, float)):
            values[key] = value.strip()
        for problem in _unclear(written, key) if written else ():
            raise CliError(Exit.USAGE, f"--set {problem}")
    return values


def _unclear(written: yaml_files.Document, *key: str) -> Iterator[Problem]:
    """Yields numbers in values of parameters that can be meant as text, such as a version or the id of a commit.

    Args:
        key: that of the document, if it is a value of its own.
    """
    for inner, text, number in written.rewritten():
        place = (*key, *inner)
        if {"parameters", "points"} & {part for step in place for part in str(step).split(".")}:
            yield Problem(place, f"is {text}, which is the number {number}", f'{number}, or "{text}" in quotes')


def catalogue() -> Iterator[tuple[Path, Source | CliError]]:
    """Yields the benchmarks that come with the command, or their errors."""
    for path in sorted(CATALOGUE.glob(f"*/{NAME}")):
        try:
            yield path, _unchanged(path, tuple(map(_state, [path, *_beside(path)])))
        except CliError as error:
            yield path, error


@lru_cache(maxsize=64)
def _unchanged(path: Path, _states: tuple[tuple[object, ...], ...]) -> Source:
    """Loads a benchmark only after a change: the page lists all of them each time, which takes a second."""
    return load(path)


def _state(path: Path) -> tuple[object, ...]:
    """Returns what changes with a file, or with the target of a link."""
    with suppress(OSError):
        state = path.stat()
        return path, state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns
    return (path,)


def _beside(path: Path) -> list[Path]:
    """Lists the files and links in the folder that can be copied to nodes, without the benchmark file itself."""
    try:
        entries = sorted(path.parent.resolve().iterdir())
        others = (entry for entry in entries if _has_name(entry) and entry.name != path.name)
        return [entry for entry in others if not _is_folder(entry) and not _is_page(entry)]
    except OSError as error:
        raise CliError(Exit.USAGE, f"the folder of {path} cannot be read: {error}") from None


def _has_name(path: Path) -> bool:
    from troop.bench.definition.keys import FILE

    return FILE.accepts(path.name)


def _is_page(path: Path) -> bool:
    """Checks whether a file is a page that Troop wrote, such as a report of an earlier run, which no script needs."""
    if path.suffix != ".html" or path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return _PAGE in file.read(_HEAD)


def _is_folder(path: Path) -> bool:
    """Checks whether a path is a folder, or a link to one within its own folder."""
    if path.is_symlink():
        with suppress(OutsideError):
            return (path.parent / safe_files.resolved(path.parent, path.name)).is_dir()
        return False
    return path.is_dir()


def _contents(path: Path, plan: Plan) -> dict[str, bytes]:
    """Reads the files that are copied to nodes. Sources of artifacts are staged instead."""
    root = path.parent.resolve()
    staged = {_end(root / artifact.source) for cell in plan.cells for artifact in cell.benchmark.artifacts}
    files = [file for file in _beside(path) if _end(file) not in staged]
    if len(files) > MOST_FILES:
        raise CliError(
            Exit.USAGE, f"there are {len(files)} files beside {path}; at most {MOST_FILES} can be copied to nodes"
        )
    contents: dict[str, bytes] = {}
    sizes: dict[str, int] = {}
    for file in files:
        with _opened(root, file.name) as stream:
            room = LARGEST_FILES - sum(map(len, contents.values()))
            contents[file.name] = stream.read(max(room, 0) + 1)
            sizes[file.name] = max(os.fstat(stream.fileno()).st_size, len(contents[file.name]))
    if sum(sizes.values()) > LARGEST_FILES:
        largest = ", ".join(sorted(sizes, key=lambda name: -sizes[name])[:3])
        raise CliError(
            Exit.USAGE,
            f"the files beside {path} have {sum(sizes.values()):,} bytes, more than {LARGEST_FILES:,}: make artifacts "
            f"of the large ones ({largest}), or move them elsewhere",
        )
    return contents


def _end(path: Path) -> str:
    """Returns the path after following links."""
    return os.path.realpath(path)


@contextmanager
def _opened(root: Path, name: str) -> Iterator[IO[bytes]]:
    """Opens a file of the benchmark's folder.

    Raises:
        CliError: USAGE; the file is outside the folder or hidden, and is never copied to nodes.
    """
    try:
        below = safe_files.resolved(root, name)
        if any(part.startswith(".") for part in below.parts):
            raise OutsideError("it is a link to a hidden file")
        with safe_files.opened(root, below) as file:
            yield file
    except OutsideError as error:
        raise CliError(
            Exit.USAGE,
            f"{root / name} cannot be copied to nodes: {error}. Replace the link with the file, or remove it",
        ) from None
    except OSError as error:
        raise CliError(Exit.USAGE, f"{root / name} cannot be read: {error.strerror}") from None


def _locate(path: Path, written: yaml_files.Document, problems: Iterable[Problem]) -> Iterator[LocatedProblem]:
    for problem in problems:
        is_option = bool(problem.place) and problem.place[0] in _OPTIONS
        yield LocatedProblem(str(path), None if is_option else written.line_of(problem.place), problem)
