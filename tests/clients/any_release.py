"""One Java program, compiled against the clients of each release since 0.9, and a broker that emulates that release.

python -m tests.clients.any_release [client:broker ...]      such as 0.9:3.9; by default each release with itself

By hand only: a JVM for each takes some minutes. Those of 0.8.2 are in `test_earlier_releases`; the consumer of its Java
clients did not work yet.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from ottla.broker.emulation.releases import Release, releases

from ottla.testing import Broker

from ..oracle.jars import RELEASES, jar_folder

SOURCE = Path(__file__).parent / "java" / "AnyRelease.java"
LIBRARIES = ("slf4j-api", "slf4j-nop", "lz4-java", "snappy-java", "zstd-jni")


def classpath(release: Release) -> str:
    """The clients of a release and the libraries of its codecs; those before 0.10 need the LZ4 of their time."""
    jars, version = jar_folder(RELEASES), release.version
    oldest = [jars / "lz4-1.2.0.jar"] if release.is_before(0, 10) else []
    others = [path for name in LIBRARIES for path in sorted(jars.glob(f"{name}-[0-9]*.jar"))]
    return ":".join(map(str, [jars / f"kafka-clients-{version}.jar", *oldest, *others]))


def run(client: Release, served: Release) -> str:
    """Returns what the program of a release says of a broker of another. CalledProcessError if it fails."""
    codecs = ["none", "gzip", "snappy", "lz4"]
    if not client.is_before(2, 1) and not served.is_before(2, 1):
        codecs.append("zstd")
    with tempfile.TemporaryDirectory() as classes, Broker({"ottla.emulate": served.name}, lab=False) as broker:
        path = classpath(client)
        subprocess.run(["javac", "-nowarn", "-d", classes, "-cp", path, str(SOURCE)], check=True, timeout=120)
        command = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{classes}:{path}", "AnyRelease"]
        done = subprocess.run(
            [*command, broker.bootstrap_servers, "any", ",".join(codecs)],
            check=True,
            capture_output=True,
            text=True,
            timeout=180,
        )
        return done.stdout.strip()


def main(arguments: list[str]) -> int:
    known = releases()
    pairs = [tuple(one.split(":")) for one in arguments] or [(name, name) for name in known if name != "0.8.2"]
    for client, served in pairs:
        print(f"clients of {client}, broker of {served}: {run(known[client], known[served])}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
