"""Installs the tools of the benchmarks with Cassandra on local AWS into `.build/tools`, once.

Java, Maven and memcached come from the distribution; on Debian and its derivatives, root installs them here. cargo
builds latte for cassandra-write, and Go the program of data-service. The fetch.py of cassandra-write downloads
Cassandra from Maven Central and verifies its hashes.
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
SERVICE_BENCHMARK = ROOT / "benchmarks" / "data-service"
SERVICE = TOOLS / "data-service"
JAVA = 17

PACKAGES = {
    "java": "openjdk-17-jre-headless",
    "mvn": "maven",
    "cc": "gcc",
    "pkg-config": "pkg-config",
    "nginx": "nginx-light",
    "memcached": "memcached",
}
"""Debian packages by their command."""
LIBRARY = Path("/usr/include/openssl/ssl.h"), "libssl-dev"
"""The library that the build of latte needs, and its Debian package."""
GO_FOLDER = "/usr/local/go/bin"
"""Go's own installer puts it here, which is not always in the path."""
GO = "Go is missing, which builds data-service. Install it from https://go.dev/dl (version 1.25 or later)"
CARGO = "cargo is missing, which builds latte. Install it from https://rustup.rs (distributions often have old ones)"


class NoToolError(RuntimeError):
    """A missing tool cannot be installed automatically; the message says how to install it."""


def missing() -> str | None:
    """Lists the missing tools of a run; None if all exist. Runs no command: pytest calls this at collection."""
    lacking = [path.name for path in (LATTE, *JARS) if not path.exists()]
    return ", ".join(lacking + ([] if shutil.which("java") else [f"Java {JAVA}"])) or None


def missing_for_service() -> str | None:
    """Lists the missing tools of a run of data-service; None if all exist. Runs no command."""
    lacking = [path.name for path in (SERVICE, *JARS) if not path.exists()]
    lacking += [
        name for name, command in ((f"Java {JAVA}", "java"), ("memcached", "memcached")) if not _is_here(command)
    ]
    return ", ".join(lacking) or None


def _is_here(command: str) -> bool:
    return shutil.which(command) is not None


def service_choices() -> list[str]:
    """Returns options of `troop bench run` with the hash of this machine's build of data-service."""
    return ["--set", f"artifacts.data-service.sha256={hashlib.sha256(SERVICE.read_bytes()).hexdigest()}"]


def prepare_service(tell: Callable[[str], None]) -> None:
    """Installs the missing tools of data-service, and builds its program, which Go's cache makes fast.

    Raises:
        NoToolError: a tool cannot be installed.
    """
    TOOLS.mkdir(parents=True, exist_ok=True)
    go = shutil.which("go") or shutil.which("go", path=GO_FOLDER)
    if go is None:
        raise NoToolError(GO)
    install(("java", "mvn", "memcached"), tell)
    tell("building data-service")
    build = [go, "-C", str(SERVICE_BENCHMARK / "service"), "build", "-trimpath", "-buildvcs=false"]
    run([*build, "-o", str(SERVICE), "."], "data-service could not be built", CGO_ENABLED="0")
    _fetch_cassandra(tell)
    if lacking := missing_for_service():
        raise NoToolError(f"still missing: {lacking}")
    _refuse_old_java()


def prepare_ring(tell: Callable[[str], None]) -> None:
    """Installs what a ring of Cassandra servers needs.

    Raises:
        NoToolError: a tool cannot be installed.
    """
    TOOLS.mkdir(parents=True, exist_ok=True)
    install(("java",) if all(path.exists() for path in JARS) else ("java", "mvn"), tell)
    _fetch_cassandra(tell)
    _refuse_old_java()


def choices() -> list[str]:
    """Returns options of `troop bench run` with the hash of this machine's build of latte."""
    digest = hashlib.sha256(LATTE.read_bytes()).hexdigest()
    return ["--set", f"artifacts.latte.sha256={digest}"]


def prepare(tell: Callable[[str], None]) -> None:
    """Installs missing tools. The first time takes minutes, because latte is built.

    Raises:
        NoToolError: a tool cannot be installed.
    """
    if missing() is None and has_java():
        return
    TOOLS.mkdir(parents=True, exist_ok=True)
    _install(tell)
    if not LATTE.exists():
        _build_latte(tell)
    _fetch_cassandra(tell)
    if lacking := missing():
        raise NoToolError(f"still missing: {lacking}")
    _refuse_old_java()


def _fetch_cassandra(tell: Callable[[str], None]) -> None:
    if not all(path.exists() for path in JARS):
        tell("downloading Cassandra from Maven Central")
        run([sys.executable, str(BENCHMARK / "fetch.py"), str(TOOLS)], "Cassandra could not be downloaded")


def _refuse_old_java() -> None:
    if not has_java():
        raise NoToolError(f"`java` is older than version {JAVA}: put a newer one first in PATH")


def has_java() -> bool:
    """Checks the version of `java`: 17 for `openjdk version "17.0.15"`."""
    if shutil.which("java") is None:
        return False
    output = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    match = re.search(r'version "(\d+)', output)
    return match is not None and int(match[1]) >= JAVA


def _install(tell: Callable[[str], None]) -> None:
    if LATTE.exists():
        install(("java", "mvn"), tell)
    else:
        install(("java", "mvn", "cc", "pkg-config"), tell, [] if LIBRARY[0].exists() else [LIBRARY[1]])


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
        raise NoToolError(f"packages are missing. Run as root: {' '.join(command)} (or install your distribution's)")
    tell(" ".join(command))
    run(["apt-get", "update", "-qq"], "the package lists could not be updated")
    run(command, "packages could not be installed", DEBIAN_FRONTEND="noninteractive")


def _build_latte(tell: Callable[[str], None]) -> None:
    if shutil.which("cargo") is None:
        raise NoToolError(CARGO)
    tell(f"building latte {LATTE_VERSION}: about five minutes, only the first time")
    package = ["latte-cli", "--version", LATTE_VERSION, "--locked", "--root", str(TOOLS)]
    with tempfile.TemporaryDirectory(dir=TOOLS) as folder:
        run(["nice", "cargo", "install", "--quiet", *package], "latte could not be built", CARGO_TARGET_DIR=folder)


def run(command: list[str], problem: str, **environment: str) -> None:
    """Runs a command in the checkout.

    Raises:
        NoToolError: it fails; ``problem`` says what that means.
    """
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise NoToolError(f"{problem}: {' '.join(command[:3])} ... ended with {done.returncode}, see above")
