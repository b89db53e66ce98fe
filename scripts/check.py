"""Checks the prose of what changed, and runs the fast tests and those of what changed: the last part of ``make check``.

Changed is what differs from the merge base with main, what is not committed, and what git does not track yet. Where
nothing is, it is the last commit. Prints the changed files' tests first, and at the end what only ``make test`` runs.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FAST = ("chaos", "bench", "shared", "faults", "measure", "disks", "statistics")
"""Folders of tests/unit whose code is pure, except for the layers in :data:`LAYERS`."""
LAYERS = ("aws", "flows", "api", "wiring")
LEFT_OUT = """== left to `make test`:
   tests of {layers}, handlers, report, dashboard, command, lifecycle, agent and benchmarks,
   unless they mirror a changed file
   fast folders: tests marked slow (deselected above), and four fifths of the examples of properties
   templates, state machines, histories of the model, facts of AWS, local AWS, whole runs, prose of other files"""
ORDINARY = "not clean_root and not cassandra and not second_opinion"


def git(*arguments: str) -> list[str]:
    """Lists the paths that a command of git prints; none where it fails."""
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    return done.stdout.replace("\0", "\n").split("\n")[:-1] if done.returncode == 0 else []


def changed() -> list[str]:
    """Lists the changed files that exist, relative to the checkout."""
    base = git("merge-base", "main", "HEAD") or git("merge-base", "origin/main", "HEAD") or ["HEAD"]
    paths = git("diff", "--name-only", "-z", base[0]) + git("ls-files", "--others", "--exclude-standard", "-z")
    paths = paths or git("show", "--first-parent", "-m", "--format=", "--name-only", "-z", "HEAD")
    return sorted({path for path in paths if Path(path).exists()})


def mirror(path: str) -> str | None:
    """Returns the test file of a changed file in tests/unit: itself, or that of the module; None without one."""
    if not path.endswith(".py"):
        return None
    if path.startswith("tests/"):
        return path if path.startswith("tests/unit/") and Path(path).name.startswith("test_") else None
    module = Path(path.removeprefix("functions/").removeprefix("troop/").replace("-", "_"))
    test = Path("tests/unit", module.parent, f"test_{module.name}")
    return str(test) if test.exists() else None


def pytest(*arguments: str) -> int:
    """Runs tests on one core; no test at all is no failure."""
    done = subprocess.run([sys.executable, "-m", "pytest", "-n", "0", "--no-header", *arguments], check=False)
    return 0 if done.returncode == 5 else done.returncode


def main() -> int:
    paths = changed()
    print(f"== prose of {len(paths)} changed files", flush=True)
    failures = subprocess.run([sys.executable, "scripts/prose.py", "--check", "--", *paths], check=False).returncode
    mirrors = sorted({test for path in paths if (test := mirror(path))})
    if mirrors:
        print(f"== tests of changed files: {' '.join(mirrors)}", flush=True)
        failures |= pytest("-m", ORDINARY, *mirrors)
    print(f"== fast tests: {', '.join(FAST)}, without {', '.join(LAYERS)}", flush=True)
    ignored = [f"--ignore-glob=tests/unit/*/{layer}" for layer in LAYERS] + [f"--ignore={test}" for test in mirrors]
    folders = [f"tests/unit/{name}" for name in FAST]
    failures |= pytest("--hypothesis-profile=check", "-m", f"not slow and {ORDINARY}", *ignored, *folders)
    print(LEFT_OUT.format(layers=", ".join(LAYERS)))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
