"""One Java program, compiled against the clients of each release since 0.8.2, and brokers that emulate releases.

python -m tests.clients.any_release [client[:broker] ...]    such as 0.9:3.9; by default each release with all of its
                                                             brokers, which takes some minutes

`tests/clients/test_java_releases.py` runs some of them, and all of them with OTTLA_RELEASES=1.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path

from ottla.broker.emulation.releases import Release, releases

from ottla.testing import Broker

from ..oracle.jars import RELEASES, jar_folder

SOURCE = Path(__file__).parent / "java" / "AnyRelease.java"
LIBRARIES = ("slf4j-api", "slf4j-nop", "lz4-java", "snappy-java", "zstd-jni")
SERVED = ("0.8.2", "0.9", "0.10.0", "0.10.2", "0.11", "1.1", "2.1", "2.8", "3.9", "4.4")
SETTINGS: dict[str, object] = {"num.partitions": 1, "delete.topic.enable": True}  # which was not so before 1.0
WITHIN_S = 300
Number = tuple[int, ...]
ALWAYS: Number = (0,)
# What the program does, in its order: since which client, and since which broker.
PARTS: dict[str, tuple[Number, Number]] = {
    "sync": (ALWAYS, ALWAYS),
    "compressed": (ALWAYS, ALWAYS),
    "unacknowledged": (ALWAYS, ALWAYS),
    "idempotent": ((0, 11), (0, 11)),
    "transactional": ((0, 11), (0, 11)),
    "assigned": ((0, 9), ALWAYS),  # the consumer of 0.8.2 has no body
    "grouped": ((0, 9), (0, 9)),
    "times": ((0, 10, 1), (0, 10, 1)),
    "topics": ((0, 11), (0, 10, 1)),
    "configs": ((0, 11), (0, 11)),
    "partitions": ((1, 0), (1, 0)),
    "groups": ((2, 0), (0, 10, 2)),
    "offsets": ((2, 5), (0, 11)),
    "deleted": ((1, 1), (0, 11)),
}


def classpath(release: Release) -> str:
    """The clients of a release and the libraries of its codecs; those before 0.10 need the LZ4 of their time."""
    jars, version = jar_folder(RELEASES), release.version
    oldest = [jars / "lz4-1.2.0.jar"] if release.is_before(0, 10) else []
    others = [path for name in LIBRARIES for path in sorted(jars.glob(f"{name}-[0-9]*.jar"))]
    return ":".join(map(str, [jars / f"kafka-clients-{version}.jar", *oldest, *others]))


def works(client: Release, served: Release) -> bool:
    """Whether clients and brokers of these releases understand each other. Clients choose versions since 0.10.2, and
    need brokers of 0.10 then, and of 2.1 since 4.0; brokers since 4.0 need clients of 2.1.
    """
    if client.is_before(0, 10, 2):
        return client.number <= served.number < (4, 0)
    if client.is_before(4, 0):
        return not served.is_before(0, 10) and (not client.is_before(2, 1) or served.is_before(4, 0))
    return not served.is_before(2, 1)


def served_to(client: Release) -> list[Release]:
    """The brokers that clients of a release are tried with: its own first."""
    known = releases()
    others = [known[name] for name in SERVED if name != client.name]
    return [client, *(one for one in others if works(client, one))]


def codecs(client: Release, served: Release) -> list[str]:
    """The codecs that both know. Those of 0.8.2 knew LZ4, which its own brokers knew, too."""
    newest = ["zstd"] if not client.is_before(2, 1) and not served.is_before(2, 1) else []
    return ["none", "gzip", "snappy", "lz4", *newest]


def parts_of(client: Release, served: Release) -> list[str]:
    """What the clients can do with the broker. Those of those years wait for long, or for ever, for what it cannot."""
    return [
        name
        for name, (client_since, since) in PARTS.items()
        if not client.is_before(*client_since) and not served.is_before(*since)
        if name != "configs" or client.is_before(4, 0) or not served.is_before(2, 3)  # IncrementalAlterConfigs
    ]


def wrong(client: Release, served: Release, said: dict[str, str]) -> list[str]:
    """What a program said that it should not have said."""
    return [
        f"clients of {client.name}, broker of {served.name}, {name}: {said.get(name)}"
        for name in parts_of(client, served)
        if said.get(name) != "ok"
    ]


def run(client: Release, served: Iterable[Release], address_of: Callable[[Release], str]) -> dict[str, dict[str, str]]:
    """Returns what the program of a release says of each part, by the names of brokers."""
    arguments = [
        f"{one.name}={address_of(one)}={'+'.join(codecs(client, one))}={','.join(parts_of(client, one))}"
        for one in served
    ]
    path = classpath(client)
    with tempfile.TemporaryDirectory() as classes:
        compiler = ["javac", "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-nowarn"]
        subprocess.run([*compiler, "-d", classes, "-cp", path, str(SOURCE)], check=True, timeout=120)
        command = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{classes}:{path}", "AnyRelease"]
        done = subprocess.run([*command, *arguments], check=False, capture_output=True, text=True, timeout=WITHIN_S)
    assert done.stdout.split()[-1:] == ["ok"], (done.stdout + done.stderr)[-4000:]
    found: dict[str, dict[str, str]] = {}
    for line in done.stdout.splitlines()[:-1]:
        name, part, said = line.split(" ", 2)
        found.setdefault(name, {})[part] = said
    sys.stderr.write(done.stderr)
    return found


class Brokers:
    """Brokers by the release that they emulate, each made when it is first asked for."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._made: dict[str, str] = {}

    def address(self, release: Release) -> str:
        if release.name not in self._made:
            broker = Broker({**SETTINGS, "ottla.emulate": release.name}, lab=False)
            self._made[release.name] = self._stack.enter_context(broker).bootstrap_servers
        return self._made[release.name]

    def __enter__(self) -> Brokers:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def main(arguments: list[str]) -> int:
    known = releases()
    failed = 0
    with Brokers() as brokers:
        for word in arguments or known:
            name, _, other = word.partition(":")
            served = [known[other]] if other else served_to(known[name])
            said = run(known[name], served, brokers.address)
            troubles = [one for each in served for one in wrong(known[name], each, said.get(each.name, {}))]
            parts = sum(len(parts_of(known[name], each)) for each in served)
            print(f"clients of {name}: {len(served)} brokers, {parts} parts in all, {len(troubles)} wrong", flush=True)
            print("".join(f"  {one}\n" for one in troubles), end="", flush=True)
            failed += len(troubles)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
