"""Rejects references of documents, docstrings and comments to names that do not exist.

``references.py`` reads the inline code of the documents, and the docstrings and comments of every Python file that git
tracks. The target of a role must exist as its module sees it. A path must be a file, a command must
have its options, and a name must stand in code outside of docstrings and comments, or be one of AWS's. Prints one line
for each reference that leads nowhere, and exits with 1 if there is any.
"""

from __future__ import annotations

import ast
import fnmatch
import gc
import gzip
import importlib.util
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import botocore
import typer

from cli.app import app
from cli.shared.context import shared_params
from cli.shared.lazy import LazyCommand

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = (
    "*.md",
    "docs/*.md",
    "benchmarks/*/README.md",
    "examples/*/README.md",
    "fleets/*/README.md",
)

ALLOWED: dict[str, frozenset[str]] = {
    "other chaos tools": frozenset({"BasicCalendar.java", "skip-all"}),
    "other benchmark tools": frozenset(
        {"pkb.py", "aws_spot_instances", "instance_provision", "post_behavior_db_nodes", "keep-on-failure"}
    ),
    "AWS's own load testing and Cassandra tools": frozenset(
        {"StopTestRun", "CollectResults", "--optimize_performance"}
    ),
    "the CDK": frozenset({"CDKToolkit", "cdk.Stage"}),
    "AWS's keys": frozenset({"aws/dynamodb", "aws/sns"}),
    "fields of Lambda's records and of CloudTrail": frozenset({"requestPayload", "responsePayload", "userAgent"}),
    "an error of Cost Explorer": frozenset({"DataUnavailableException"}),
    "programs of a system": frozenset({"accton", "ebsnvme", "pipx"}),
    "Linux's macro for an ioctl": frozenset({"_IOWR"}),
    "options of fio and memtier": frozenset({"unified_rw_reporting", "--status-interval", "--hdr-file-prefix"}),
    "packages and targets of others": frozenset({"bottlerocket-kernel-kit", "linux-arm64"}),
    "a key that is nearly one of Troop's": frozenset({"troop_opt_out"}),
    "the salt of what-if commands": frozenset({"troop what-if"}),
    "a version of hatchling": frozenset({"editable"}),
    "examples": frozenset({"KeptRun", "made_at", "Outer.Inner"}),
}
"""Exceptions by their reason. Keep fewer than twenty reasons."""

_FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(?<!`)(``?)(?!`)([^`]+)\1(?!`)")
_ROLE = re.compile(r":(?:class|func|mod|data|meth|attr|exc):`~?([^`]+)`")
_COMMENT = re.compile(r"(?:^|(?<=\s))# .*", re.MULTILINE)
_CONSTANT = re.compile(r"\b[A-Za-z]\w+\.[A-Z][A-Z_]+\b")

_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'')
_COMPOSED = re.compile(r"[\w{}.()]*\{[\w.()]+\}[\w{}.()]*")
_WORD = re.compile(r"[A-Za-z_]\w*")
_MARKED = re.compile(r"[\w-]*(?:[_-]|[a-z][A-Z])[\w-]*|(?<=[/.:{`'])[\w-]+|[\w-]+(?=[.:/=(}`'])")
_QUOTED = re.compile(r'"(\w+)"')

_FILE = re.compile(r"[\w.*<>-]+\.(?:py|md|html|js|css|toml|yaml|json|pyz|sh|jmx|tar)")
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*(?:\([^()]*\))?")
_HYPHENATED = re.compile(r"[a-z][a-z0-9]*(?:-[a-z][a-z0-9]*)+")
_LOGICAL_ID = re.compile(r"[A-Za-z]+[0-9A-F]{8}")
_HOST = re.compile(r"(?:[a-z0-9-]+\.)+com")
_PLACEHOLDER = re.compile(r"<[^>]*>|\*|\b(?:NAME|ROLE|HANDLER|STEP|RUN|CELL|ID|KEY)\b")


@dataclass(slots=True)
class Names:
    """What a module or class defines: classes with their names, imports with their targets, and other names."""

    names: dict[str, Names | str | None] = field(default_factory=dict)
    bases: list[str] = field(default_factory=list)


def _targets(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                yield inner.id


def definitions(body: Iterable[ast.stmt], package: Sequence[str], lines: Sequence[str]) -> Names:
    """Lists what statements define, also inside conditions; for a class also the attributes of ``self``.

    Args:
        package: the parts of the package's name, for relative imports.
        lines: of the whole source.
    """
    result = Names()
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                result.names[name] = None
            case ast.ClassDef(name=name, body=inside):
                nested = definitions(inside, package, lines)
                attributes = re.findall(r"\bself\.(\w+)", "\n".join(lines[node.lineno - 1 : node.end_lineno]))
                nested.names = {**dict.fromkeys(attributes), **nested.names}
                nested.bases = [ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases]
                result.names[name] = nested
            case ast.Import(names=aliases):
                for alias in aliases:
                    result.names[alias.asname or alias.name.partition(".")[0]] = alias.asname and alias.name
            case ast.ImportFrom(module=module, names=aliases, level=level):
                source = [*(package[: len(package) - level + 1] if level else ()), *filter(None, [module])]
                for alias in aliases:
                    result.names[alias.asname or alias.name] = ".".join([*source, alias.name])
            case ast.Assign(targets=targets):
                result.names.update(dict.fromkeys(_targets(targets)))
            case ast.AnnAssign(target=target):
                result.names.update(dict.fromkeys(_targets([target])))
            case ast.If() | ast.Try() | ast.With() | ast.For():
                blocks = [getattr(node, name, []) for name in ("body", "orelse", "finalbody")]
                blocks += [handler.body for handler in getattr(node, "handlers", [])]
                result.names.update(definitions([inner for block in blocks for inner in block], package, lines).names)
    return result


@dataclass(frozen=True, slots=True)
class Docstring:
    """A docstring: its first and last line, its text, and the classes around it."""

    line: int
    end: int
    text: str
    classes: tuple[str, ...]


def docstrings(tree: ast.AST, classes: tuple[str, ...] = ()) -> Iterator[Docstring]:
    """Lists the docstrings of modules, classes, functions, constants and fields."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield Docstring(node.lineno, node.end_lineno or node.lineno, text, classes)
            case ast.ClassDef(name=name):
                yield from docstrings(node, (*classes, name))
            case ast.stmt() | ast.ExceptHandler():
                yield from docstrings(node, classes)


def code_of(source: str, strings: Iterable[Docstring]) -> str:
    """Leaves out docstrings, comments, and the plain words of sentences in strings."""
    lines = source.splitlines()
    for string in strings:
        lines[string.line - 1 : string.end] = [""] * (string.end - string.line + 1)
    code = _COMMENT.sub("", "\n".join(lines))
    return _STRING.sub(lambda text: " ".join(_MARKED.findall(text[0])) if " " in text[0] else text[0], code)


def _keys(value: Any) -> Iterator[str]:
    """Lists the keys and values of a JSON document, without descriptions."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            if not (key in ("description", "summary", "title") and isinstance(inner, str)):
                yield from _keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _keys(inner)
    elif isinstance(value, str):
        yield value


def module_parts(path: str) -> list[str]:
    """Splits a path into the parts of its module's name."""
    return path.removeprefix("functions/").removesuffix(".py").removesuffix("/__init__").split("/")


class Repository:
    """What the repository has: files, modules, and the words of its code."""

    def __init__(self, root: Path) -> None:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True)
        self.files = [path for path in listed.stdout.split("\0") if path and (root / path).is_file()]
        self.folders = {str(parent) for path in self.files for parent in Path(path).parents} - {"."}
        self.sources: dict[str, str] = {}
        self.docstrings: dict[str, list[Docstring]] = {}
        self.modules: dict[str, Names] = {}
        self.keys: set[str] = set()
        code: list[str] = []
        for path in self.files:
            if path.endswith(".md"):
                continue
            text = (root / path).read_text(encoding="utf-8", errors="ignore")
            if path.endswith(".py"):
                self._read_module(path, text)
                code.append(code_of(text, self.docstrings[path]))
            elif path.endswith(".json"):
                keys = list(_keys(json.loads(text)))
                self.keys.update(keys)
                code += keys
            else:
                code.append(text)
                if path.endswith(".yaml"):
                    self.keys.update(re.findall(r"(\w+):", text))
        self.code = "\n".join(code)
        self.words = set(_WORD.findall(self.code))
        self.strings = set(_QUOTED.findall(self.code))
        self.packages = {".".join(module_parts(f"{folder}/__init__.py")) for folder in self.folders}
        self.classes: dict[str, list[Names]] = {}
        self.stems: dict[str, list[Names]] = {}
        for name, module in self.modules.items():
            self.stems.setdefault(name.rpartition(".")[2], []).append(module)
            for key, value in module.names.items():
                if isinstance(value, Names):
                    self.classes.setdefault(key, []).append(value)

    def _read_module(self, path: str, text: str) -> None:
        tree = ast.parse(text)
        parts = module_parts(path)
        package = parts if path.endswith("__init__.py") else parts[:-1]
        self.sources[path] = text
        self.docstrings[path] = list(docstrings(tree))
        self.modules[".".join(parts)] = definitions(tree.body, package, text.splitlines())

    @cached_property
    def aws(self) -> set[str]:
        """The names in botocore's models of the services that the code names, and cdk-nag's rules."""
        words: set[str] = set()
        for folder in (Path(botocore.__file__).parent / "data").iterdir():
            if f'"{folder.name}"' in self.code:
                for model in folder.glob("*/service-2.json.gz"):
                    words.update(_QUOTED.findall(gzip.decompress(model.read_bytes()).decode()))
        rules = importlib.util.find_spec("cdk_nag")  # to import it starts Node.js
        for archive in Path(str(rules and rules.origin)).parent.glob("_jsii/*.tgz"):
            with tarfile.open(archive) as package:
                words.update(Path(name).stem for name in package.getnames() if "/rules/" in name)
        return words

    @cached_property
    def composed(self) -> list[re.Pattern[str]]:
        """The forms of the names that code composes, such as ``Throttled{name}``."""
        forms = {text[1:-1] for text in _STRING.findall(self.code) if _COMPOSED.fullmatch(text[1:-1])}
        patterns = {re.sub(r"\{[^{}]*\}", r"(\\w+)", form) for form in forms}
        return [re.compile(form) for form in patterns if re.search(r"[A-Za-z]{4}", form.replace(r"(\w+)", ""))]

    def word(self, name: str) -> bool:
        """Says whether code has or composes a name, or AWS has it."""
        if name in self.words or name.upper() in self.words or name in self.aws:
            return True
        matches = (form.fullmatch(name) for form in self.composed)
        return any(match and self.strings.issuperset(match.groups()) for match in matches)

    def inside(self, names: Names, parts: Sequence[str]) -> bool:
        """Says whether a module or class has a name, also by an import or a base class."""
        if not parts:
            return True
        if parts[0] not in names.names:
            bases = [base for name in names.bases for base in self.classes.get(name, []) if base is not names]
            return any(self.inside(base, parts) for base in bases)
        match names.names[parts[0]]:
            case Names() as nested:
                return self.inside(nested, parts[1:])
            case str(target) if parts[1:]:
                return self.absolute([*target.split("."), *parts[1:]])
            case _:
                return True

    def absolute(self, parts: Sequence[str]) -> bool:
        """Says whether a module or a name in it exists, here or in an installed package."""
        name = ".".join(parts)
        if name in self.modules or name in self.packages:
            return True
        for size in range(len(parts) - 1, 0, -1):
            if module := self.modules.get(".".join(parts[:size])):
                return self.inside(module, parts[size:])
        return parts[0] not in self.packages and importlib.util.find_spec(parts[0]) is not None

    def role(self, path: str, target: str, classes: Sequence[str]) -> bool:
        """Says whether the target of a role exists, as its module and the classes around it see it."""
        parts = module_parts(path)
        package = parts if path.endswith("__init__.py") else parts[:-1]
        names = target.lstrip(".").split(".")
        if level := len(target) - len(target.lstrip(".")):
            return self.absolute([*package[: len(package) - level + 1], *names])
        around = [[*classes[:size], *names] for size in range(len(classes) + 1)]
        module = self.modules[".".join(parts)]
        return any(self.inside(module, seen) for seen in around) or any(
            self.absolute(seen) for seen in ([*package, *names], names)
        )

    def dotted(self, parts: Sequence[str]) -> bool:
        """Says whether a dotted name exists: of a class, of a module or package, or as keys of a file."""
        if candidates := self.classes.get(parts[0]):
            return any(self.inside(names, parts[1:]) for names in candidates)
        if any(self.inside(names, parts[1:]) for names in self.stems.get(parts[0], [])):
            return True
        if parts[0] in ("troop", *(name.partition(".")[0] for name in self.packages)) and self.absolute(parts):
            return True
        if not all(_PLACEHOLDER.fullmatch(part) or self.word(part) for part in parts):
            return False
        ours = parts[0] in self.stems or parts[0] in self.packages or parts[-1].isupper()
        return not ours or parts[-1] in self.keys or any(map(_PLACEHOLDER.fullmatch, parts))

    def file(self, path: str) -> bool:
        """Says whether a path, or the end of one, is a file or folder; ``.py`` may be missing."""
        path = _PLACEHOLDER.sub("*", path.removesuffix("/"))
        there = [*self.files, *self.folders]
        if "*" in path:
            return any(fnmatch.fnmatch(name, f"*{path}") for name in there)
        return any(name == end or name.endswith(f"/{end}") for end in (path, f"{path}.py") for name in there)

    def path(self, text: str) -> bool:
        """Says whether what looks like a path leads to a file, or is one that code names, such as a key of a bucket."""
        if self.file(text):
            return True
        first, _, rest = text.partition("/")
        last = text.removesuffix("/").rpartition("/")[2]
        parts = [part for part in _PLACEHOLDER.split(text.removesuffix("/")) if part]
        if last.endswith((".py", ".md")) or (
            rest and any(f"/{folder}".endswith(f"/{first}") for folder in self.folders)
        ):
            ignored = ["git", "check-ignore", "-q", text]  # what a build or a run makes
            return (
                all(part in self.code for part in parts)
                or subprocess.run(ignored, cwd=ROOT, check=False).returncode == 0
            )
        stem = _PLACEHOLDER.sub("*", last).rpartition(".")[0]
        pieces = [piece for piece in re.split(r"[*.]", stem) if piece]
        return not _FILE.fullmatch(last) or all(re.search(rf"[\"'/.}}]{piece}[\"'/.{{]", self.code) for piece in pieces)

    @cached_property
    def commands(self) -> dict[str, set[str]]:
        """The options of each command, by its words without ``troop``."""
        options: dict[str, set[str]] = {}

        def add(command: Any, words: str) -> None:
            if isinstance(command, LazyCommand):
                command = command.load()
            params = [*command.params, *shared_params()]
            options[words] = {option for param in params for option in (*param.opts, *param.secondary_opts)} | {
                "--help"
            }
            for name, nested in getattr(command, "commands", {}).items():
                add(nested, f"{words} {name}".strip())

        add(typer.main.get_command(app), "")
        return options

    def command(self, text: str) -> bool:
        """Says whether a command line of ``troop`` names a command with these options."""
        words = re.sub(r"^troop((?: --?[a-z]+ [\w-]+)*)", "", text).split()
        size = 0
        while size < len(words) and " ".join(words[: size + 1]) in self.commands:
            size += 1
        name = " ".join(words[:size])
        group = any(other.startswith(f"{name} ".lstrip()) and other for other in self.commands)
        rest = words[size:]
        if group and rest and re.fullmatch(r"[a-z][a-z-]*", rest[0]):
            return False
        options = re.findall(r"(?<![\w-])--?[a-z][a-z-]*", " ".join(rest))
        return all(option in self.commands[name] for option in options)

    def option(self, text: str) -> bool:
        """Says whether code has an option, or the parameter that typer makes it of."""
        return text in self.code or text.lstrip("-").replace("-", "_") in self.words

    def code_exists(self, text: str) -> bool:
        """Says whether what a piece of inline code names exists; True where it looks like no name."""
        first = text.split()[0]
        if _HOST.fullmatch(text) or _LOGICAL_ID.fullmatch(text):
            return True
        if setting := re.fullmatch(r"troop:(\w+)(?:=.*)?", text):
            return setting[1] in self.words
        if first == "make" and (target := re.match(r"make ([\w-]+)", text)):
            return re.search(rf"^(?:[\w-]+ )*{target[1]}(?: [\w-]+)*:", self.code, re.MULTILINE) is not None
        if first == "troop" and " " in text:
            return self.command(text)
        if text.startswith("--") and (option := re.match(r"--[a-z][a-z_-]+", text)):
            return self.option(option[0])
        if re.fullmatch(r"[\w.*<>-]+(?:/[\w.*<>-]+)*/?", text) and ("/" in text or _FILE.fullmatch(text)):
            return self.path(text)
        if _HYPHENATED.fullmatch(text):
            return text in self.code or self.word(text)
        if _NAME.fullmatch(text):
            parts = text.partition("(")[0].split(".")
            return self.dotted(parts) if parts[1:] else self.word(parts[0])
        return True


def main() -> int:
    gc.disable()  # syntax trees have no cycles, and millions of nodes
    repository = Repository(ROOT)
    allowed = frozenset[str]().union(*ALLOWED.values())
    missing: list[str] = []

    def check(path: str, line: int, text: str) -> None:
        for code in _CODE.finditer(text):
            reference = " ".join(code[2].split())
            names = {reference, reference.split()[0], reference.partition("(")[0]} if reference else set()
            if names and not allowed & names and not repository.code_exists(reference):
                missing.append(f"{path}:{line + text.count(chr(10), 0, code.start())}: {reference}")

    for pattern in DOCUMENTS:
        for document in sorted(ROOT.glob(pattern)):
            text = _FENCED.sub(lambda block: "\n" * block[0].count("\n"), document.read_text(encoding="utf-8"))
            if document.name == "CHANGELOG.md":  # earlier versions had other names
                before, heading, after = text.partition("\n## Unreleased")
                text = "\n" * before.count("\n") + heading + after.partition("\n## ")[0]
            check(str(document.relative_to(ROOT)), 1, text)
    for path, strings in repository.docstrings.items():
        for string in strings:
            for role in _ROLE.finditer(string.text):
                if not repository.role(path, role[1], string.classes):
                    missing.append(f"{path}:{string.line}: {role[0]}")
            check(path, string.line, _ROLE.sub("", string.text))
        source = repository.sources[path]
        for comment in _COMMENT.finditer(source):
            line = source.count("\n", 0, comment.start()) + 1
            for name in _CONSTANT.findall(comment[0]):
                if not repository.role(path, name, ()) and not repository.dotted(name.split(".")):
                    missing.append(f"{path}:{line}: {name}")
    sys.stdout.writelines(f"{problem}: no such name; correct it, or add it to ALLOWED\n" for problem in missing)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
