"""A benchmark's file and what lies beside it, read and checked without asking anybody."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from cli import safe_files, yaml_files
from cli.errors import CliError, Exit
from cli.safe_files import OutsideError
from troop.bench.admission import LARGEST_FILES, MOST_FILES
from troop.bench.definition import Artifact, Benchmark
from troop.bench.plan import Plan, sole
from troop.bench.problems import BadBenchmarkError, Problem

if TYPE_CHECKING:
    from troop.bench_file.read import ReadFile

CATALOGUE = Path(__file__).resolve().parents[1] / "benchmarks"
NAME = "benchmark.yaml"
FLEET_NAME = "fleet.yaml"

_OPTIONS = {"set": "--set", "size": "--size"}
"""What was given on the command line, by the first step of a problem's place."""


MOST_FILES_SHOWN = 30
"""That people see of what is copied to nodes."""


@dataclass(frozen=True)
class LocatedProblem:
    """A problem, and where the file has it.

    Attributes:
        line: of the file, the first is 1; None for what was given on the command line.
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
    """A file that cannot be run as it is written; a line for each problem.

    Attributes:
        view: the first problems, at most :data:`MOST_PROBLEMS`.
        more: how many others there are.
    """

    def __init__(self, located: Iterable[LocatedProblem], code: Exit = Exit.USAGE) -> None:
        problems = list(located)
        self.problems, self.more = problems[:MOST_PROBLEMS], max(0, len(problems) - MOST_PROBLEMS)
        more = [f"and {self.more:,} more"] if self.more else []
        super().__init__(code, "\n".join([*map(str, self.problems), *more]))


MOST_PROBLEMS = 50
"""Of a file, that are reported one by one."""


@dataclass(frozen=True)
class Source:
    """A benchmark as people have written it.

    Attributes:
        written: the file, for its lines.
        document: of the file, as the API takes it.
        files: contents of what lies beside it, by name.
        benchmark: what it comes to, with size and changes.
        plan: the cells that a run of it has.
    """

    path: Path
    written: yaml_files.Document
    document: Mapping[str, Any]
    files: Mapping[str, bytes]
    benchmark: Benchmark
    plan: Plan

    def artifacts(self) -> list[Artifact]:
        """Of all cells, each content once; files of this machine first: what is wrong with them is known at once."""
        by_sha256 = {a.sha256: a for cell in self.plan.cells for a in cell.benchmark.artifacts}
        return sorted(by_sha256.values(), key=lambda artifact: "://" in artifact.source)

    def sizes(self) -> dict[str, int]:
        """Bytes of what is copied to nodes, by name."""
        return {name: len(content) for name, content in sorted(self.files.items())}

    def copied(self) -> str:
        """What is copied to nodes, as a sentence: of very many files the largest."""
        sizes = self.sizes()
        if not sizes:
            return "no files are copied to nodes"
        largest = sorted(sizes, key=lambda name: -sizes[name])[:MOST_FILES_SHOWN]
        names = ", ".join(f"{name} ({size:,} bytes)" for name, size in sizes.items() if name in largest)
        more = f" and {len(sizes) - len(largest)} more" if len(sizes) > len(largest) else ""
        return f"copied to nodes, {sum(sizes.values()):,} bytes in all: {names}{more}"

    def encoded(self) -> dict[str, str]:
        """What lies beside the file, as the API takes it."""
        return {name: base64.b64encode(content).decode() for name, content in self.files.items()}

    def refused(self, problems: Iterable[Problem]) -> WrongFileError:
        """What the deployment has found in it."""
        return WrongFileError(_locate(self.path, self.written, problems), Exit.REFUSED)


def load(path: Path, size: str | None = None, changes: Mapping[str, Any] | None = None) -> Source:
    """A benchmark's file, and what lies in its folder.

    Args:
        path: of the file, or of a folder that has a ``benchmark.yaml``.
        changes: values by key, as ``--set`` gives them.

    Raises:
        CliError: USAGE; a :class:`WrongFileError` for what is wrong in the file.
    """
    from troop.bench_file.read import read_all  # here, for pydantic takes its time, and most commands need none of it

    return _load(path, NAME, lambda document, files: read_all(document, files, size, changes))


def load_fleet(path: Path, changes: Mapping[str, Any] | None = None) -> Source:
    """A standing fleet's file, and what lies in its folder; as :func:`load`."""
    from troop.bench_file.read import ReadFile
    from troop.bench_file.read_fleet import read_fleet

    def read(document: Any, files: list[str]) -> ReadFile:
        fleet = read_fleet(document, files, changes)
        return ReadFile(fleet, sole(fleet))

    return _load(path, FLEET_NAME, read)


def _load(path: Path, name: str, read: Callable[[Any, list[str]], ReadFile]) -> Source:
    path = _file(path, name)
    if path.is_symlink():  # what lies beside it is copied: the folder must be the one that is named
        with _opened(path.parent.resolve(), path.name):
            pass
    written = yaml_files.Document(yaml_files.read(path), str(path))
    document = written.values
    try:
        definition = read(document, [file.name for file in _beside(path)])
    except BadBenchmarkError as bad:
        raise WrongFileError(_locate(path, written, bad.problems)) from None
    files = _contents(path, definition.plan)
    copied = tuple(sorted(files))
    cells = tuple(replace(one, benchmark=replace(one.benchmark, files=copied)) for one in definition.plan.cells)
    benchmark, plan = replace(definition.benchmark, files=copied), replace(definition.plan, cells=cells)
    return Source(path, written, document, files, benchmark, plan)


def _file(path: Path, name: str) -> Path:
    """The file that is meant.

    Raises:
        CliError: USAGE; it is one of the other kind.
    """
    other, kind, command = (
        (FLEET_NAME, "a standing fleet", "troop fleet") if name == NAME else (NAME, "a benchmark", "troop bench")
    )
    if path.name == other or (path.is_dir() and not (path / name).exists() and (path / other).exists()):
        raise CliError(Exit.USAGE, f"{path} is {kind}: `{command} --help` says what can be done with it")
    return path / name if path.is_dir() else path


def assignments(words: Iterable[str]) -> dict[str, Any]:
    """``["parameters.threads=8"]`` as ``{"parameters.threads": 8}``: values are read as YAML.

    Raises:
        CliError: USAGE.
    """
    values: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise CliError(Exit.USAGE, f"{word!r} is no assignment: write --set KEY=VALUE, as in parameters.threads=8")
        if key in values:
            raise CliError(Exit.USAGE, f"{key} is given twice")
        values[key] = yaml_files.parse(value, f"the value of {key}") if value.strip() else ""
    return values


def catalogue() -> Iterator[tuple[Path, Source | CliError]]:
    """The benchmarks of this checkout, or what is wrong with them."""
    for path in sorted(CATALOGUE.glob(f"*/{NAME}")):
        try:
            yield path, load(path)
        except CliError as error:
            yield path, error


def _beside(path: Path) -> list[Path]:
    """Lists what lies in the folder under a name that can be copied to nodes, links among it, wherever they lead; but
    for folders, hidden files and the benchmark's own.
    """
    try:
        entries = sorted(path.parent.resolve().iterdir())
        return [entry for entry in entries if _has_name(entry) and entry.name != path.name and not _is_folder(entry)]
    except OSError as error:
        raise CliError(Exit.USAGE, f"the folder of {path} cannot be read: {error}") from None


def _has_name(path: Path) -> bool:
    from troop.bench_file.models import FILE

    try:
        FILE.parse(path.name)
    except ValueError:
        return False
    return True


def _is_folder(path: Path) -> bool:
    """Whether it is a folder itself, or a link to one within its own folder."""
    if path.is_symlink():
        with suppress(OutsideError):
            return (path.parent / safe_files.resolved(path.parent, path.name)).is_dir()
        return False
    return path.is_dir()


def _contents(path: Path, plan: Plan) -> dict[str, bytes]:
    """Reads what is copied to nodes. What is an artifact's source takes another way."""
    root = path.parent.resolve()
    staged = {_end(root / artifact.source) for cell in plan.cells for artifact in cell.benchmark.artifacts}
    files = [file for file in _beside(path) if _end(file) not in staged]
    if len(files) > MOST_FILES:
        raise CliError(
            Exit.USAGE, f"{len(files)} files lie beside {path}, and at most {MOST_FILES} can be copied to nodes"
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
            f"the files beside {path} are {sum(sizes.values()):,} bytes, more than {LARGEST_FILES:,}: make artifacts "
            f"of the large ones ({largest}), or put them elsewhere",
        )
    return contents


def _end(path: Path) -> str:
    """Answers where a path leads."""
    return os.path.realpath(path)


@contextmanager
def _opened(root: Path, name: str) -> Iterator[IO[bytes]]:
    """Opens a file of the benchmark's folder.

    Raises:
        CliError: USAGE; it is none: what lies elsewhere, or is hidden, is never copied to nodes.
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
            f"{root / name} cannot be copied to nodes: {error}: put the file itself there, or remove it",
        ) from None
    except OSError as error:
        raise CliError(Exit.USAGE, f"{root / name} cannot be read: {error.strerror}") from None


def _locate(path: Path, written: yaml_files.Document, problems: Iterable[Problem]) -> Iterator[LocatedProblem]:
    for problem in problems:
        is_option = bool(problem.place) and problem.place[0] in _OPTIONS
        yield LocatedProblem(str(path), None if is_option else written.line_of(problem.place), problem)
