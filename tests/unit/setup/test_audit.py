"""`make audit`: advisories and services that do not answer are never taken for good news."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = str(Path(__file__).parents[3] / "scripts" / "audit")
CLEAN = {"dependencies": [{"name": "six", "version": "1.17.0", "vulns": []}]}
WEAK = {
    "dependencies": [{"name": "rsa", "version": "4.7", "vulns": [{"id": "PYSEC-1", "fix_versions": ["4.8"]}]}],
}
SKIPPED = {"dependencies": [{"name": "six", "skip_reason": "Dependency not found on PyPI"}]}
UNREADABLE = "no export"
NPM_CLEAN: dict[str, Any] = {"vulnerabilities": {}}
NPM_WEAK = {
    "vulnerabilities": {"ws": {"via": [{"title": "Denial of service"}], "range": "<8.20", "severity": "high"}},
}
NPM_DOWN = {"message": "405 Method Not Allowed"}


@pytest.fixture
def script() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("audit", SCRIPT)
    spec = importlib.util.spec_from_loader("audit", loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("pypi", "npm", "code", "words"),
    [
        (CLEAN, NPM_CLEAN, 0, "No advisory is known"),
        (WEAK, NPM_CLEAN, 1, "rsa 4.7: PYSEC-1, fixed in 4.8"),
        (CLEAN, NPM_WEAK, 1, "ws <8.20: high: Denial of service"),
        (UNREADABLE, NPM_CLEAN, 2, "uv.lock is not checked: error: Failed to parse `uv.lock`"),
        (SKIPPED, NPM_CLEAN, 2, "1 of 1 packages have no answer, such as: Dependency not found on PyPI"),
        ("connection refused", NPM_CLEAN, 2, "uv.lock is not checked: connection refused"),
        (CLEAN, NPM_DOWN, 2, "package-lock.json is not checked: 405 Method Not Allowed"),
        (WEAK, NPM_DOWN, 1, "package-lock.json is not checked: 405 Method Not Allowed"),
    ],
)
def test_exit_code(
    script: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    pypi: Any,
    npm: Any,
    code: int,
    words: str,
) -> None:
    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        if command[0].endswith("uv"):
            if pypi == UNREADABLE:
                return subprocess.CompletedProcess(command, 2, "", "error: Failed to parse `uv.lock`\n")
            return subprocess.CompletedProcess(command, 0, "six==1.17.0 --hash=sha256:00\n", "")
        if command[0].endswith("pip-audit"):
            # An empty list has no advisories.
            listed = Path(command[-1]).read_text()
            answer = pypi if listed else {"dependencies": []}
        else:
            answer = npm
        if isinstance(answer, str):
            return subprocess.CompletedProcess(command, 1, "", f"Traceback\n{answer}\n")
        return subprocess.CompletedProcess(command, 1, json.dumps(answer), "")

    monkeypatch.setattr(subprocess, "run", run)
    assert script.main() == code
    output = capsys.readouterr()
    assert words in output.out + output.err
