"""Downloads Cassandra and the JMX agent from Maven Central with Maven: ``python3 fetch.py FOLDER``.

Writes ``cassandra.tar``, in the form of the distribution's archive but without cassandra-stress, and ``jolokia.jar``.
Both are reproducible byte by byte; the benchmark's file contains their SHA-256.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

VERSION = "5.0.6"
JOLOKIA = "org.jolokia:jolokia-agent-jvm:2.1.2:jar:javaagent"
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"
SHA256 = {
    "cassandra.tar": "cc0ac8f7c7c3970bc66252376476eff9f5c7784b8c8b4f36c59e286f6eae4c80",
    "jolokia.jar": "38be4960fce575b355e9142f3c3cb89e54fb52bbbef4e1d48a5a6a1df8adb9bf",
}
ELSEWHERE = ("osx", "windows", "riscv64")
"""Parts of the names of libraries that these nodes do not need."""


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: python3 fetch.py FOLDER")
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in (("cassandra.tar", cassandra), ("jolokia.jar", jolokia)):
        target = folder / name
        if not target.exists() or digest(target) != SHA256[name]:
            make(target)
            if digest(target) != SHA256[name]:
                sys.exit(f"{target} has changed: its SHA-256 is {digest(target)} instead of {SHA256[name]}")
        print(f"{digest(target)}  {target}")
    shutil.rmtree(folder / "m2", ignore_errors=True)


def cassandra(target: Path) -> None:
    library = target.with_name("lib")
    shutil.rmtree(library, ignore_errors=True)
    goal = f"{PLUGIN}:copy-dependencies"
    maven(target.parent, goal, "-f", str(Path(__file__).with_name("pom.xml")), f"-DoutputDirectory={library}")
    partial = target.with_suffix(".part")
    with tarfile.open(partial, "w", format=tarfile.USTAR_FORMAT) as archive:  # JARs are already compressed
        for jar in sorted(library.glob("*.jar")):
            if not any(part in jar.name for part in ELSEWHERE):
                entry = tarfile.TarInfo(f"apache-cassandra-{VERSION}/lib/{jar.name}")
                content = jar.read_bytes()
                entry.size, entry.mode = len(content), 0o644
                archive.addfile(entry, io.BytesIO(content))
    partial.replace(target)
    shutil.rmtree(library)


def jolokia(target: Path) -> None:
    _, name, version, kind, classifier = JOLOKIA.split(":")
    maven(target.parent, f"{PLUGIN}:copy", f"-Dartifact={JOLOKIA}", f"-DoutputDirectory={target.parent}")
    (target.parent / f"{name}-{version}-{classifier}.{kind}").replace(target)


def maven(folder: Path, *arguments: str) -> None:
    """Runs Maven with a separate repository, to keep it independent of the user's."""
    command = ["mvn", "--quiet", "--batch-mode", f"-Dmaven.repo.local={folder / 'm2'}", *arguments]
    try:
        done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, check=False)
    except OSError as error:
        sys.exit(f"cannot run Maven: {error}. Install it, for example with apt-get install maven")
    if done.returncode:
        sys.exit(f"{' '.join(command[:1])} failed with exit code {done.returncode}")


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    main()
