"""Builds the documents of local AWS that have the names of AWS's own, from the folder `documents`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "documents"
_STEP_SECONDS = "43200"
_NUMBER = "[0-9]{1,9}"


def fault_documents() -> dict[str, tuple[Mapping[str, Any], bool]]:
    """Returns the content of each document by its name, and whether it needs a network of the instance's own."""
    listed = tomllib.loads((FOLDER / "documents.toml").read_text(encoding="utf-8"))
    return {name: (_content(name, entry), entry.get("network", False)) for name, entry in listed.items()}


def _content(name: str, entry: Mapping[str, Any]) -> Mapping[str, Any]:
    ranges = {key: one["range"] for key, one in entry["parameters"].items() if "range" in one}
    check = "".join(_range_check(key, least, most) for key, (least, most) in ranges.items())
    check += _script("dependencies.sh").replace("TOOLS", " ".join(entry["tools"]))
    installs = {"type": "String", "default": "True", "allowedValues": ["True", "False"]}
    return {
        "schemaVersion": "2.2",
        "description": f"Plays {name}",
        "parameters": {
            **{key: _parameter(one) for key, one in entry["parameters"].items()},
            "InstallDependencies": installs,
        },
        "mainSteps": [
            _step("InstallDependencies", check, onFailure="exit"),
            _step("FaultInjection", "".join(map(_script, entry["scripts"]))),
        ],
    }


def _range_check(name: str, least: int, most: int) -> str:
    value = f"{{{{ {name} }}}}"
    wrong = f'echo "{name} must be from {least} to {most}" >&2; exit 1'
    return f"[ {value} -ge {least} ] && [ {value} -le {most} ] || {{ {wrong}; }}\n"


def _script(file: str) -> str:
    return (FOLDER / file).read_text(encoding="utf-8")


def _parameter(entry: Mapping[str, Any]) -> dict[str, Any]:
    pattern = _NUMBER if "range" in entry else entry.get("pattern")
    limits = {"default": entry.get("default"), "allowedValues": entry.get("values"), "allowedPattern": pattern}
    return {"type": "String", **{key: value for key, value in limits.items() if value is not None}}


def _step(name: str, script: str, **more: str) -> dict[str, Any]:
    inputs = {"timeoutSeconds": _STEP_SECONDS, "runCommand": script.splitlines()}
    return {"action": "aws:runShellScript", "name": name, "inputs": inputs, **more}
