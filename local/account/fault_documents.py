"""Builds the documents of local AWS that have the names of AWS's own, from the folder `documents`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "documents"
_DURATION = "[1-9][0-9]{0,4}"
_STEP_SECONDS = "43200"


def fault_documents() -> dict[str, tuple[Mapping[str, Any], bool]]:
    """Returns the content of each document by its name, and whether it needs a network of the instance's own."""
    listed = tomllib.loads((FOLDER / "documents.toml").read_text(encoding="utf-8"))
    return {name: (_content(name, entry), entry.get("network", False)) for name, entry in listed.items()}


def _content(name: str, entry: Mapping[str, Any]) -> Mapping[str, Any]:
    check = _script("dependencies.sh").replace("TOOLS", " ".join(entry["tools"]))
    fault = "".join(map(_script, entry["scripts"]))
    parameters = {key: _parameter(key, value) for key, value in entry["parameters"].items()}
    installs = {"type": "String", "default": "True", "allowedValues": ["True", "False"]}
    return {
        "schemaVersion": "2.2",
        "description": f"Plays {name}",
        "parameters": {**parameters, "InstallDependencies": installs},
        "mainSteps": [_step("InstallDependencies", check, onFailure="exit"), _step("FaultInjection", fault)],
    }


def _script(file: str) -> str:
    return (FOLDER / file).read_text(encoding="utf-8")


def _parameter(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    pattern = entry.get("pattern", _DURATION if name == "DurationSeconds" else None)
    limits = {"default": entry.get("default"), "allowedValues": entry.get("allowed"), "allowedPattern": pattern}
    return {"type": "String", **{key: value for key, value in limits.items() if value is not None}}


def _step(name: str, script: str, **more: str) -> dict[str, Any]:
    inputs = {"timeoutSeconds": _STEP_SECONDS, "runCommand": script.splitlines()}
    return {"action": "aws:runShellScript", "name": name, "inputs": inputs, **more}
