"""Builds the artifacts of web-scale: ``python3 benchmarks/web-scale/software/build.py [flights|jmeter]``.

``flights.tar`` is the application for both architectures; it needs Go. ``jmeter.tar`` is JMeter from Maven Central, in
the layout of its distribution; it needs Maven. Both are in the folder ``build`` of the benchmark. They are reproducible
byte by byte, and the benchmark's file contains their SHA-256.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
BENCHMARK = HERE.parent
BUILD = BENCHMARK / "build"
GO = "go1.26.8"
"""The release of Go. Another one would build another file, so Go downloads this one if it is not installed."""
ARCHITECTURES = {"arm64": "arm64", "x86_64": "amd64"}
"""Go's names of them."""
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"
VERSION = "5.6.3"
SHA256 = {
    "flights": "3a7d7e37e00b00a2ddac23fb98aa222cab3847e17d73cd1db13667795bef4462",
    "jmeter": "606361daae48f7e936c77f3d5f54a25d10d38d7774aaf794c4d5fd5188ec03b3",
}
"""The checksums of the artifacts, as in the benchmark's file."""
FIRST = f"ApacheJMeter-{VERSION}.jar"
CONFIGURATION = f"ApacheJMeter_config-{VERSION}.jar"


def main() -> None:
    builders = {"flights": flights, "jmeter": jmeter}
    names = sys.argv[1:] or list(builders)
    if unknown := [name for name in names if name not in builders]:
        sys.exit(f"there is no artifact {unknown[0]}: must be {' or '.join(builders)}")
    BUILD.mkdir(exist_ok=True)
    for name in names:
        target = BUILD / f"{name}.tar"
        if not target.exists() or digest(target) != SHA256[name]:
            builders[name](target)
            if digest(target) != SHA256[name]:
                sys.exit(
                    f"{target} has the SHA-256 {digest(target)} instead of {SHA256[name]}. If you have changed "
                    f"its source, set artifacts.{name}.sha256"
                )
        print(f"{digest(target)}  {target}")


def flights(target: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        files = []
        for architecture, goarch in sorted(ARCHITECTURES.items()):
            program = Path(name) / architecture
            environment = {"CGO_ENABLED": "0", "GOOS": "linux", "GOARCH": goarch, "GOTOOLCHAIN": GO, "GOFLAGS": ""}
            environment |= {"GOWORK": "off", "GOAMD64": "v1", "GOARM64": "v8.0", "GOEXPERIMENT": ""}
            options = ["-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", str(program)]
            remedy = "install Go from https://go.dev/dl"
            run([go(), "build", *options, "."], BENCHMARK / "flights", remedy, environment)
            files.append((architecture, program.read_bytes()))
        write(target, iter(files))


def go() -> str:
    return shutil.which("go") or "/usr/local/go/bin/go"


def jmeter(target: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        library = Path(name) / "lib"
        goal = [f"{PLUGIN}:copy-dependencies", "-f", str(HERE / "pom.xml"), f"-DoutputDirectory={library}"]
        options = ["--quiet", "--batch-mode", f"-Dmaven.repo.local={name}/m2"]  # not the user's own
        run(["mvn", *options, *goal], HERE, "install Maven, for example with apt-get install maven", {})
        write(target, distribution(library))


def distribution(library: Path) -> Iterator[tuple[str, bytes]]:
    """Yields names and contents as JMeter's distribution has them."""
    with zipfile.ZipFile(library / CONFIGURATION) as packed:
        for name in sorted(packed.namelist()):
            if name.startswith("bin/") and not name.endswith("/"):
                yield name, packed.read(name)
    yield "bin/ApacheJMeter.jar", (library / FIRST).read_bytes()
    yield "lib/junit/README", b"JMeter expects this folder.\n"
    for jar in sorted(library.glob("*.jar")):
        if jar.name not in (FIRST, CONFIGURATION):
            folder = "lib/ext" if jar.name.startswith("ApacheJMeter_") else "lib"
            yield f"{folder}/{jar.name}", jar.read_bytes()


def write(target: Path, files: Iterator[tuple[str, bytes]]) -> None:
    """Writes an archive that is the same for the same files: without times and owners."""
    partial = target.with_suffix(".part")
    with tarfile.open(partial, "w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in files:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    partial.replace(target)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def run(words: list[str], folder: Path, remedy: str, environment: dict[str, str]) -> None:
    try:
        done = subprocess.run(
            words, cwd=folder, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, check=False
        )
    except OSError as error:
        sys.exit(f"cannot run {words[0]}: {error}. {remedy}")
    if done.returncode:
        sys.exit(f"{Path(words[0]).name} failed with exit code {done.returncode}, see above")


if __name__ == "__main__":
    main()
