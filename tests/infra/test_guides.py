"""What documents print is what the product takes: commands, files of benchmarks and fleets, JSON and Python.

Documents of a benchmark in the catalogue are held against that benchmark's own file.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import botocore.session
import pytest
import typer
from botocore import xform_name
from typer.testing import CliRunner

from cli.app import app
from cli.client import deployments_file
from cli.forecasts.what_if import FIXED_SALT
from cli.shared import yaml_files
from infra import ROOT
from tests.unit.chaos.test_health import ALL_BAD, digest_of
from troop.bench.definition.problems import BadBenchmarkError
from troop.bench.file.fleet_models import FleetFileIn
from troop.bench.file.models import BenchmarkIn, PhaseIn
from troop.bench.file.read import read_all
from troop.bench.file.read_fleet import read_fleet

DOCUMENTS = [
    path
    for folder in (".", "docs", "docs/*", "benchmarks/*", "fleets/*")
    for path in sorted(ROOT.glob(f"{folder}/*.md"))
    if path.name not in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
]
TROOP: Any = typer.main.get_command(app)
CATALOGUED = ("validate", "estimate", "run", "schedule")
"""Commands whose first argument is a benchmark."""


@dataclass(frozen=True)
class Block:
    """A block of code in a document.

    Attributes:
        kind: the word after the fence, such as ``sh``.
        line: its first line's number.
    """

    document: Path
    kind: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.document.relative_to(ROOT)}:{self.line}"


def blocks(*kinds: str) -> list[Block]:
    """Lists the blocks of code of all documents, in order."""
    listed = []
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        for match in re.finditer(r"^( *)```(\w+)\n(.*?)^\1```$", text, re.MULTILINE | re.DOTALL):
            if match[2] in kinds:
                listed.append(Block(document, match[2], text[: match.start(3)].count("\n") + 1, match[3]))
    return listed


def lines(block: Block) -> Iterator[str]:
    """Yields the lines of the shell: of a console those after a prompt, each with those that continue it."""
    pending = ""
    for line in block.text.splitlines():
        if block.kind == "console" and not pending:
            if not line.lstrip().startswith("$ "):
                continue
            line = line.lstrip()[2:]
        pending += line.lstrip() if pending.endswith(" ") else line
        if pending.endswith("\\"):
            pending = pending[:-1]
        elif re.sub(r"#.*", "", pending).count("'") % 2:
            pending += " "
        else:
            yield pending
            pending = ""


def commands(text: str, program: str = "troop") -> Iterator[list[str]]:
    """Yields the words of every command of a program in a line of the shell."""
    words = shlex.shlex(text, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    command: list[str] = []
    for word in [*words, ";"]:
        if set(word) <= set("();<>|&"):
            if command[:1] == [program]:
                yield command
            command = []
        elif command or not re.fullmatch(r"\w+=\S*|if|then|do|while|!|watch|\{", word):
            command.append(word)


PRINTED = [(block, words) for block in blocks("sh", "console") for line in lines(block) for words in commands(line)]


@pytest.fixture(autouse=True)
def _in_the_root_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def context_of(words: list[str]) -> typer.Context:
    """Parses as the console script would, and runs nothing."""
    context: typer.Context = TROOP.make_context("troop", list(words[1:]))
    while hasattr(context.command, "commands"):
        group: Any = context.command
        name, command, rest = group.resolve_command(context, [*context._protected_args, *context.args])
        context = command.make_context(name, rest, parent=context)
    return context


def test_every_line_that_begins_with_the_command_is_parsed() -> None:
    begun = [line for block in blocks("sh", "console") for line in block.text.splitlines()]
    assert len(PRINTED) >= sum(bool(re.match(r"(\$ )?troop ", line)) for line in begun) > 100


@pytest.mark.parametrize(("block", "words"), PRINTED, ids=str)
def test_a_printed_command_is_one_that_the_command_line_takes(block: Block, words: list[str]) -> None:
    if words[1:] not in ([], ["--help"], ["--version"], ["--install-completion"]):
        assert not context_of(words).args


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_within_sentences_have_their_words_and_options(document: Path) -> None:
    """As far as a synopsis, such as ``troop bench run FILE [--size S]``, has them."""
    text = re.sub(r"^( *)```.*?^\1```$", "", document.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for synopsis in re.findall(r"`(troop [^`]+)`", text.replace(FIXED_SALT, "")):
        command, context = TROOP, typer.Context(TROOP)
        options = {"--help", "--version", "--install-completion", "--show-completion"}
        for word in re.split(r"[\s\[\]()]+", synopsis)[1:]:
            if hasattr(command, "commands") and not word.startswith("-") and word in command.commands:
                command = command.get_command(context, word)
                command = command.load() if hasattr(command, "load") else command
            elif hasattr(command, "commands"):
                assert not re.fullmatch(r"[a-z][a-z-]*", word), f"{synopsis}: {word}"
            known = {option for one in (TROOP, command) for param in one.params for option in param.opts} | options
            known |= {option for param in command.params for option in param.secondary_opts}
            for option in re.findall(r"(?:^|\|)(--[\w-]+)", word):
                assert option in known, f"{synopsis}: {option}"


def catalogued(words: list[str]) -> Path | None:
    """Returns the folder of the catalogue's benchmark that a command names, by its path or its name."""
    if len(words) < 4 or words[1] != "bench" or words[2] not in CATALOGUED:
        return None
    folders = (ROOT / words[3], ROOT / "benchmarks" / words[3])
    return next((folder for folder in folders if (folder / "benchmark.yaml").exists()), None)


RUNS = [(block, words, folder) for block, words in PRINTED if (folder := catalogued(words))]


@pytest.mark.parametrize(("block", "words", "folder"), RUNS, ids=str)
def test_a_printed_run_of_the_catalogue_is_accepted(
    block: Block, words: list[str], folder: Path, tmp_path: Path
) -> None:
    """With its sizes, which the document may have its reader add, and its changes."""
    parts = [yaml_files.parse(one.text, str(one)) for one in YAML if one.document == block.document]
    if added := {name: size for part in parts if part.keys() == {"sizes"} for name, size in part["sizes"].items()}:
        whole = yaml_files.parse((folder / "benchmark.yaml").read_text(encoding="utf-8"), words[3])
        folder = Path(shutil.copytree(folder, tmp_path / folder.name))
        (folder / "benchmark.yaml").write_text(json.dumps(whole | {"sizes": whole["sizes"] | added}), encoding="utf-8")
    changes = [
        word for n, word in enumerate(words) if words[n - 1] in ("--size", "--set") for word in (words[n - 1], word)
    ]
    changes = [re.sub(r"sha256=(\$\w+|HASH)$", f"sha256={'0f' * 32}", word) for word in changes]
    result = CliRunner().invoke(app, ["bench", "validate", str(folder), *changes])
    assert result.exit_code == 0, result.output


NODES = {"count": 4, "instance_type": "c7g.large"}
WHOLE: dict[str, Any] = {
    "name": "example",
    "expires_after": "20h",
    "fleets": {"servers": NODES, "drivers": NODES},
    "phases": [
        {"name": "prepare", "roles": ["servers"], "script": "prepare.py", "timeout": "10m"},
        {
            "name": "measure",
            "roles": ["drivers"],
            "script": "read.py",
            "start_together": True,
            "warm_up": "30s",
            "measured": "5m",
            "timeout": "10m",
        },
    ],
    "targets": {"shop": {"load_balancer": "shop", "ports": [443], "roles": ["drivers"]}},
    "parameters": {
        **{"bucket": "my-data", "threads": 4, "rate": 500, "clients": 2, "max_bytes": 1024, "workload": {"read": 100}},
        **{"tool": "k6", "plan": "plan.js", "target": "shop", "version": "1.2"},
    },
}
"""What a part of a file is put into."""
YAML = blocks("yaml")
FILES = ("prepare.py", "read.py", "plan.js", "empty_cache.sh", "setup.sh", "restart.sh")
ONLY_STANDING = {"backup", "resizable", "health", "work", "heal", "scale"}
"""Keys of a role that only standing fleets have."""
KEYS_OF_FLEETS = FleetFileIn.model_fields.keys() - BenchmarkIn.model_fields.keys()


def whole(part: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a file with a part of one: of the file itself, or of its phase that measures."""
    if part.keys() <= PhaseIn.model_json_schema()["properties"].keys():
        measure = {**WHOLE["phases"][1], **part}
        hit = [fault["role"] for fault in part.get("faults", ()) if "role" in fault]
        fleets = {**WHOLE["fleets"], **dict.fromkeys(hit, NODES)}
        return {**WHOLE, "fleets": fleets, "phases": [WHOLE["phases"][0], measure]}
    roles = {role for target in part.get("targets", {}).values() for role in target["roles"]}
    fleets = {**WHOLE["fleets"], **dict.fromkeys(roles, NODES), **part.get("fleets", {})}
    return {**WHOLE, **part, "fleets": fleets}


@pytest.mark.parametrize("block", YAML, ids=str)
def test_a_printed_file_or_part_of_one_is_accepted(block: Block, tmp_path: Path) -> None:
    part = yaml_files.parse(block.text, str(block))
    if isinstance(part, dict) and "deployments" in part:
        (tmp_path / "deployments.yaml").write_text(block.text)
        assert deployments_file.read(tmp_path / "deployments.yaml")
    own = block.document.parent / "benchmark.yaml"
    known = BenchmarkIn.model_fields.keys() | PhaseIn.model_json_schema()["properties"].keys() | KEYS_OF_FLEETS
    if not isinstance(part, dict) or not part.keys() <= known:
        return
    fleets = part.get("fleets", {}).values()
    if part.keys() & KEYS_OF_FLEETS or any(ONLY_STANDING & one.keys() for one in fleets):
        scales = any("scale" in one for one in fleets)
        example = {"name": "example", "expires_after": "8h", "queue": scales, "fleets": {"workers": NODES}}
        read_fleet(example | part, FILES)
    elif own.exists():
        its = yaml_files.parse(own.read_text(encoding="utf-8"), str(own))
        parameters = its["parameters"] | part.get("parameters", {})
        read_all(its | part | {"parameters": parameters, "allowed": {}, "sizes": {}})
    else:
        read_all(part if "name" in part else whole(part), FILES)


def test_the_reader_refuses_mistakes_in_printed_parts() -> None:
    for part in ({"fleets": {"servers": {**NODES, "colour": "red"}}}, {"limits": [{"figure": "p90"}]}):
        with pytest.raises(BadBenchmarkError):
            read_all(whole(part), FILES)


@pytest.mark.parametrize("block", blocks("json"), ids=str)
def test_printed_json_is_json(block: Block) -> None:
    text = block.text if block.text.lstrip()[0] in "[{" else f"{{{block.text}}}"
    json.loads(text)


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_printed_python_is_python(block: Block) -> None:
    compile(block.text, str(block), "exec")


def within_sentences(document: Path) -> list[str]:
    """Lists the inline code of a document."""
    text = re.sub(r"^( *)```.*?^\1```$", "", document.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", text)]


def printed(program: str) -> list[tuple[str, list[str]]]:
    """Lists the commands of a program with their places, in blocks and within sentences."""
    listed = [
        (str(block), words)
        for block in blocks("sh", "console")
        for line in lines(block)
        for words in commands(line, program)
    ]
    for document in DOCUMENTS:
        spans = [span for span in within_sentences(document) if span.startswith(f"{program} ")]
        listed += [(str(document.relative_to(ROOT)), words) for span in spans for words in commands(span, program)]
    return listed


CLI_OPTIONS = {"--query", "--output", "--max-items", "--page-size", "--region", "--profile", "--cli-input-json"}
"""What the AWS CLI takes with every operation, or every one of several pages."""
BEYOND = {("s3", "ls"): set[str](), ("s3", "sync"): {"--exclude"}, ("s3", "cp"): {"--recursive"}}
"""What the CLI has beyond AWS's operations, with the options that documents may give."""
RENAMED = {
    **{"--notification-endpoint": "--endpoint", "--protocol": "--ip-protocol", "--cidr": "--cidr-ip"},
    "--source-group": "--source-security-group-name",
}
"""Options that the CLI calls otherwise than AWS does, for some operations."""


@cache
def model(service: str) -> Any:
    return botocore.session.get_session().get_service_model(service)


def commands_of_findings() -> list[tuple[str, list[str]]]:
    """Lists the commands of the AWS CLI that a deployment's findings name, with the finding's name as their place."""
    checks = digest_of(**ALL_BAD).checks
    named = [(f"finding: {check.name}", shlex.split(command)) for check in checks for command in check.commands]
    return [(place, words) for place, words in named if words[0] == "aws"]


@pytest.mark.parametrize(
    ("place", "words"),
    [*printed("aws"), *commands_of_findings()],
    ids=lambda one: one if isinstance(one, str) else " ".join(one[1:3]),
)
def test_a_printed_command_of_the_aws_cli_exists_with_its_options(place: str, words: list[str]) -> None:
    service, *rest = [word.replace("s3api", "s3") for word in words[1:]]
    if service == "--version":
        return
    known = model(service)
    if not rest:
        return
    name = rest[0]
    options = {word for word in words if word.startswith("--")}
    if (beyond := BEYOND.get((service, name))) is not None:
        assert options <= beyond, place
        return
    operations = {xform_name(one, "-"): one for one in known.operation_names}
    assert name in operations, place
    takes = known.operation_model(operations[name]).input_shape
    named = {f"--{xform_name(one, '-')}": shape for one, shape in takes.members.items()} if takes else {}
    renamed = {option if option in named else RENAMED.get(option, option) for option in options}
    assert renamed <= {*named, *CLI_OPTIONS}, place
    mandatory = {f"--{xform_name(one, '-')}" for one in takes.required_members} if takes else set()
    named_only = not options and ":" not in place
    assert mandatory <= renamed or "--cli-input-json" in options or named_only, place
    for option, value in pairwise(words):
        if enum := getattr(named.get(option), "enum", None):
            assert value in enum, place


RECIPES = {
    target: "".join(lines)
    for target, *lines in re.findall(
        r"^([a-z][\w-]*):(.*\n)((?:\t.*\n)*)", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
}


@pytest.mark.parametrize(
    ("place", "words"), printed("make"), ids=lambda one: one if isinstance(one, str) else " ".join(one[1:3])
)
def test_a_printed_target_of_make_exists_and_uses_its_variables(place: str, words: list[str]) -> None:
    if "-C" in words:  # a Makefile of others
        return
    for word in words[1:]:
        variable, equals, _ = word.partition("=")
        assert equals or word in RECIPES, place
        targets = [one for one in words[1:] if one in RECIPES]
        assert not equals or any(f"$({variable})" in RECIPES[one] for one in targets), f"{place}: {word}"


def test_every_line_that_begins_with_such_a_program_is_parsed() -> None:
    text = "".join(block.text for block in blocks("sh"))
    for program, least in (("aws", 30), ("make", 15)):
        begun = len(re.findall(rf"^ *{program} ", text, re.MULTILINE))
        assert len(printed(program)) >= begun >= least, program


@pytest.mark.parametrize(
    "document", sorted({block.document for block in blocks("sh")}), ids=lambda path: str(path.relative_to(ROOT))
)
def test_the_shell_takes_every_printed_block(document: Path) -> None:
    for block in blocks("sh"):
        if block.document == document:
            done = subprocess.run(["bash", "-n"], input=block.text, text=True, capture_output=True, check=False)
            assert (done.returncode, done.stderr) == (0, ""), block
