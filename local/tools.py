"""What the Cassandra benchmark runs on this machine, besides Troop's own: in `.build/tools`, got once, and kept.

Java and Maven are the distribution's (installed here by root, where that is of Debian's kind), latte is built by cargo,
and Cassandra comes from Maven Central, by the benchmark's own fetch.py, which holds it against its hashes.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from .project import ROOT

TOOLS = ROOT / ".build" / "tools"
BENCHMARK = ROOT / "benchmarks" / "cassandra-write"
LATTE, LATTE_VERSION = TOOLS / "bin" / "latte", "0.29.0"
JARS = (TOOLS / "cassandra.tar", TOOLS / "jolokia.jar")
JAVA = 17

PACKAGES = {"java": "openjdk-17-jre-headless", "mvn": "maven", "cc": "gcc", "pkg-config": "pkg-config"}
"""Command -> the package of Debian that has it."""
LIBRARY = Path("/usr/include/openssl/ssl.h"), "libssl-dev"
"""Which latte is built with."""
CARGO = "cargo is missing, which builds latte: see https://rustup.rs (distributions' own is often too old)"


class NoToolError(RuntimeError):
    """Something is missing that cannot be installed from here; the message says how to get it."""


def missing() -> str | None:
    """What a run needs that is not there; None when all is. Runs nothing, for tests ask it when they are collected."""
    lacking = [path.name for path in (LATTE, *JARS) if not path.exists()]
    return ", ".join(lacking + ([] if shutil.which("java") else [f"Java {JAVA}"])) or None


def choices() -> list[str]:
    """What `troop bench run` is told of this machine's build of latte, whose hash no file can name."""
    digest = hashlib.sha256(LATTE.read_bytes()).hexdigest()
    return ["--set", f"artifacts.latte.sha256={digest}"]


def prepare(tell: Callable[[str], None]) -> None:
    """Gets what is missing. Minutes the first time, for latte is built; nothing afterwards.

    Raises:
        NoToolError: it cannot.
    """
    if missing() is None and has_java():
        return
    TOOLS.mkdir(parents=True, exist_ok=True)
    _install(tell)
    if not LATTE.exists():
        _build_latte(tell)
    if not all(path.exists() for path in JARS):
        tell("getting Cassandra from Maven Central")
        _run([sys.executable, str(BENCHMARK / "fetch.py"), str(TOOLS)], "Cassandra could not be got")
    if what := missing():
        raise NoToolError(f"there is still no {what}")
    if not has_java():
        raise NoToolError(f"`java` is none of version {JAVA} or later: let it be one")


def has_java() -> bool:
    """Whether there is one that is new enough: 17 of `openjdk version "17.0.15"`."""
    if shutil.which("java") is None:
        return False
    output = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    match = re.search(r'version "(\d+)', output)
    return match is not None and int(match[1]) >= JAVA


def _install(tell: Callable[[str], None]) -> None:
    if LATTE.exists():
        install(("java", "mvn"), tell)
    else:
        install(PACKAGES, tell, [] if LIBRARY[0].exists() else [LIBRARY[1]])


def install(commands: Iterable[str], tell: Callable[[str], None], libraries: Sequence[str] = ()) -> None:
    """Installs those commands of :data:`PACKAGES` that this machine lacks, and further packages.

    Raises:
        NoToolError: it is not root on a Debian, or apt-get fails.
    """
    lacking = {
        command for command in commands if shutil.which(command) is None or (command == "java" and not has_java())
    }
    packages = [*(PACKAGES[command] for command in sorted(lacking)), *libraries]
    if not packages:
        return
    command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise NoToolError(f"needed first, as root: {' '.join(command)} (or what your distribution calls these)")
    tell(" ".join(command))
    _run(["apt-get", "update", "-qq"], "the lists of packages could not be read")
    _run(command, "packages could not be installed", DEBIAN_FRONTEND="noninteractive")


def _build_latte(tell: Callable[[str], None]) -> None:
    if shutil.which("cargo") is None:
        raise NoToolError(CARGO)
    tell(f"building latte {LATTE_VERSION}: about five minutes, once")
    package = ["latte-cli", "--version", LATTE_VERSION, "--locked", "--root", str(TOOLS)]
    with tempfile.TemporaryDirectory(dir=TOOLS) as folder:
        _run(["nice", "cargo", "install", "--quiet", *package], "latte could not be built", CARGO_TARGET_DIR=folder)


def _run(command: list[str], problem: str, **environment: str) -> None:
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise NoToolError(f"{problem}: {' '.join(command[:3])} ... ended with {done.returncode}, see above")
