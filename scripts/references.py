"""Rejects references of documents, docstrings and comments to names that do not exist.

``references.py`` reads the inline code of documents and of the docstrings of every Python file that git tracks, and
constants of modules in comments. A name exists if code has it as a word outside of docstrings, comments and sentences,
or if AWS has it. What follows a module or a class must stand in its file. Commands must have their options. Prints one
line for each reference that leads nowhere, and exits with 1 if there is any.
"""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
import sysconfig
import tarfile
from collections import defaultdict
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cached_property, partial
from pathlib import Path

from cli.shared.context import shared_params
from scripts.prose import commands

ALLOWED: dict[str, str] = {
    "other chaos tools": "BasicCalendar.java, skip-all",
    "other benchmark tools": "pkb.py, aws_spot_instances, instance_provision, post_behavior_db_nodes, keep-on-failure",
    "AWS's own load testing and Cassandra tools": "StopTestRun, CollectResults, --optimize_performance",
    "a logical id": "FunctionsTerminate1AD9550E",
    "fields of Lambda's records and of CloudTrail": "requestPayload, responsePayload, userAgent",
    "names of AWS's services": "spot.amazonaws.com, scheduler.amazonaws.com, com.amazonaws.REGION.s3",
    "programs of a system": "accton, ebsnvme, nodetool",
    "Linux's macro for an ioctl": "_IOWR",
    "options of fio and memtier": "unified_rw_reporting, --status-interval, --hdr-file-prefix",
    "packages and targets of others": "bottlerocket-kernel-kit, linux-arm64",
    "a key that is nearly one of Troop's": "troop_opt_out",
    "a tag with a hyphen": "troop:expires-at",
    "alarms, whose names code composes": "TeardownFailed, TeardownTimedOut, ThrottledTerminate, ThrottledCell",
    "what a build writes": "benchmarks/cassandra-write/build/latte",
    "the salt of what-if commands": "troop what-if",
    "examples": "Outer.Inner, troop:KEY",
}
"""Exceptions by their reason, separated by commas. Keep fewer than twenty reasons."""

_DOCUMENT = re.compile(r"[^/]+\.md|docs/(?:[^/]+/)?[^/]+\.md|(?:benchmarks|examples|fleets)/[^/]+/README\.md")
_EXAMPLES = "references.py"
"""End of the names of this file and its test, whose strings are references."""
_NOT_CHECKED = re.compile(r"^ *```.*?^ *```|^## \d.*", re.MULTILINE | re.DOTALL)
"""Blocks of documents, and the changelog's versions: they had other names."""
_TRIPLE_QUOTED = re.compile(r'((?:\A|\n) *)?r?""".*?"""', re.DOTALL)
"""A docstring begins its line."""
_FILE = re.compile(r"\w\.(?:py|md|html|js|css|toml|yaml|json|pyz|sh)$")
_DATA = re.compile(r"\.(?:json|yaml|toml)$")
_ROLE = re.compile(r":\w+:`~?([\w.]+)`")
_COMMENT = re.compile(r"(?:^|(?<=\s))# .*", re.MULTILINE)
_CONSTANT = re.compile(r"\b[a-z]\w+\.[A-Z][A-Z_]+\b")
_INLINE_CODE = re.compile(r"(?<!`)(``?)(?!`)([^`]+)\1(?!`)")

_SENTENCE = re.compile(r'"(?:[^"\\\n]|\\.)* (?:[^"\\\n]|\\.)*"')
_PLAIN_WORD = re.compile(r"(?<=[\s\"'(])[A-Z]?[a-z]+[,.:;)]*(?=[\s\"'])")
_WORD = re.compile(r"[A-Za-z_]\w*")
_PLACEHOLDER = re.compile(r"<[^>]*>|\*|\b(?:NAME|ROLE|HANDLER|STEP|RUN|CELL|ID|KEY)\b")


def role_as_code(module: str, role: re.Match[str]) -> str:
    """Writes a role as inline code; a target without dots is in the module of the docstring."""
    return f"``{role[1].lstrip('.') if '.' in role[1] else f'{module}.{role[1]}'}``"


class Names:
    """What exists in the tracked files.

    Args:
        sources: text by path.
    """

    def __init__(self, sources: dict[str, str]) -> None:
        self.paths = {*sources, *(str(parent) for path in sources for parent in Path(path).parents)}
        self.beside: dict[str, set[str]] = defaultdict(set)
        """The words after a module, package or class in a dotted name."""
        code: list[str] = []
        for path, text in sources.items():
            if path.endswith((".md", _EXAMPLES)):
                continue
            if path.endswith(".py"):
                text = _TRIPLE_QUOTED.sub(lambda string: string[0] if string[1] is None else "", text)
            text = _SENTENCE.sub(lambda string: _PLAIN_WORD.sub("", string[0]), _COMMENT.sub("", text))
            code.append(text)
            if path.endswith(".py"):
                *packages, stem = path.removesuffix(".py").removesuffix("/__init__").split("/")
                for name in (stem, *re.findall(r"^ *class (\w+)", text, re.MULTILINE)):
                    self.beside[name].update(_WORD.findall(text))
                for package, name in zip(packages, [*packages, stem][1:], strict=True):
                    self.beside[package].add(name)
        self.code = "\n".join(code)
        self.words = {*_WORD.findall(self.code), *self.beside}
        self.keys = {word for path, text in sources.items() if _DATA.search(path) for word in _WORD.findall(text)}

    @cached_property
    def aws(self) -> set[str]:
        """The names in botocore's models of the services that the code names, and cdk-nag's rules."""
        words: set[str] = set()
        packages = Path(sysconfig.get_path("purelib"))
        for model in packages.glob("botocore/data/*/*/service-2.json.gz"):
            if f'"{model.parts[-3]}"' in self.code:
                words.update(re.findall(r'"(\w+)"', gzip.decompress(model.read_bytes()).decode()))
        for archive in packages.glob("cdk_nag/_jsii/*.tgz"):
            with tarfile.open(archive) as package:
                words.update(Path(name).stem for name in package.getnames() if "/rules/" in name)
        return words

    @cached_property
    def options(self) -> dict[str, set[str]]:
        """The options of each command and group."""
        return {
            words: {"--help"}.union(*(param.opts + param.secondary_opts for param in command.params + shared_params()))
            for words, command in commands()
        }

    def name(self, text: str) -> bool:
        """Says whether each part of a dotted name exists, and what follows a module or class stands in its file.

        A constant always follows one of them.
        """
        before = ""
        for part in text.split("."):
            spellings = {part, part.upper(), part.removeprefix("TROOP_")}
            follows_module = before in self.beside or (before and part.isupper())
            words = (self.keys, self.beside.get(before, set())) if follows_module else (self.words, self.aws)
            if all(map(spellings.isdisjoint, words)) and not _PLACEHOLDER.fullmatch(part):
                return False
            before = part
        return True

    def path(self, text: str) -> bool:
        """Says whether a path, or the end of one, is a file or folder; outside of folders, code may have the words."""
        pattern = f"*/{_PLACEHOLDER.sub('*', text.removesuffix('/'))}"
        if text.partition("/")[0] not in self.paths and self.words.issuperset(_WORD.findall(pattern)):
            return True
        return any(fnmatch(f"/{path}", pattern) for path in self.paths)

    def command(self, text: str) -> bool:
        """Says whether a command line of ``troop`` names a command with its options."""
        name = max((name for name in self.options if f"{text} ".startswith(f"{name} ")), key=len)
        rest = text.removeprefix(name)
        if re.match(" [a-z]", rest) and any(other.startswith(f"{name} ") for other in self.options):
            return False
        return self.options[name].issuperset(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", rest))

    def exists(self, text: str) -> bool:
        """Says whether what a piece of inline code names exists; True where it looks like no name."""
        if target := re.match(r"make ([\w-]+)", text):
            return re.search(rf"^(?:[\w-]+ )*{target[1]}(?: [\w-]+)*:", self.code, re.MULTILINE) is not None
        if text.startswith("troop "):
            return self.command(text)
        if setting := re.match(r"troop:(\w+)", text):
            return f'"{setting[0]}"' in self.code
        if option := re.match(r"--([a-z][a-z_-]+)", text):
            return option[0] in self.code or option[1].replace("-", "_") in self.words
        if re.fullmatch(r"\w[\w.*<>/-]+", text) and (text.partition("/")[0] in self.paths or _FILE.search(text)):
            return self.path(text)
        if re.fullmatch(r"[a-z]\w*(?:-[a-z]\w*)+", text):
            return text in self.code or text in self.aws
        name = re.fullmatch(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:\([^()]*\))?", text)
        return name is None or self.name(name[1])


def missing(sources: dict[str, str]) -> Iterator[str]:
    """Lists the references of files that lead nowhere, as ``path:line: reference``."""
    names = Names(sources)
    allowed = ", ".join(ALLOWED.values()).split(", ")
    for path, text in sources.items():
        if path.endswith(".py") and not path.endswith(_EXAMPLES):
            text = _ROLE.sub(partial(role_as_code, Path(path).stem), text)
            text = _COMMENT.sub(lambda comment: _CONSTANT.sub(r"``\g<0>``", comment[0]), text)
        elif _DOCUMENT.fullmatch(path):
            text = _NOT_CHECKED.sub(lambda block: "\n" * block[0].count("\n"), text)
        else:
            continue
        for code in _INLINE_CODE.finditer(text):
            reference = " ".join(code[2].split())
            first = re.split(r"[ (]", reference)[0]
            if first not in allowed and reference not in allowed and not names.exists(reference):
                yield f"{path}:{text.count(chr(10), 0, code.start()) + 1}: {reference}"


def main() -> int:
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, check=True).stdout.split("\0")
    files = [Path(path) for path in listed if Path(path).is_file()]
    problems = list(missing({str(path): path.read_text(encoding="utf-8", errors="ignore") for path in files}))
    sys.stdout.writelines(f"{problem}: no such name; correct it, or add it to ALLOWED\n" for problem in problems)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
