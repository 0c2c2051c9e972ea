"""Derives what earlier releases of Kafka have from their jars: `schemas/releases.json` (the versions of APIs, error
codes and features of each release), `schemas/earlier_configs.json` (their configuration keys) and `schemas/old` (the
schemas of the versions that Kafka 4 removed).

    python -m tests.oracle.derive_releases [--check]

The versions of the APIs come from the classes of each release, the schemas from the last release that had them all,
because older ones have them in classes only. `--check` writes nothing, and fails when a file differs.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from . import derive_earlier_configs
from .derive_schemas import ROOT, SCHEMA_KEYS, facts, rendered, without_comments
from .jars import HERE, RELEASES, jar_folder, jar_paths

NOT_SCHEMAS = ("releases.json", "earlier_configs.json")
NEWEST_WITH_OLD_VERSIONS = "3.9"
KRAFT_SINCE = (3, 3)  # before, brokers for production had ZooKeeper
WITHOUT_ZOOKEEPER_SINCE = (4, 0)
# What the classes of clients had and a broker of that release did not serve: asked with the broker itself.
NOT_SERVED = {"0.8.2": (11, 12)}
ONLY_MINOR = {"0.9.0": "0.9", "0.11.0": "0.11"}  # there was no 0.9.1 and no 0.11.1
# The broker's own codes (`kafka.common.ErrorMapping`), which the classes of clients did not name yet.
BROKER_ERRORS = {"0.8.2": (4, 8, 9, 11, 14, 15, 16)}


def jars() -> dict[str, Path]:
    """The jar of the clients by release, in their order."""
    found = {}
    for path in jar_paths(RELEASES):
        match = re.fullmatch(r"kafka-clients-((0\.)?\d+\.\d+)\.[\d.]+\.jar", path.name)
        if match is not None:
            found[ONLY_MINOR.get(match[1], match[1])] = path
    return dict(sorted(found.items(), key=lambda item: numbers(item[0])))


def numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def said_by(classpath: str, listener: str) -> dict[str, Any]:
    """What the classes of a release say of a kind of brokers."""
    command = ["java", "-cp", classpath, "Releases", listener]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=120).stdout)
    return found


def releases() -> dict[str, Any]:
    """What each release has, by the name that `ottla.emulate` gives it."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as compiled:
        source = HERE / "java" / "Releases.java"
        subprocess.run(["javac", "-nowarn", "-d", compiled, str(source)], check=True, timeout=120)
        for release, jar in jars().items():
            version = jar.name.removeprefix("kafka-clients-").removesuffix(".jar")
            common = jar_folder(RELEASES) / f"kafka-server-common-{version}.jar"
            slf4j = next(jar_folder(RELEASES).glob("slf4j-api-*.jar"))
            classpath = ":".join(map(str, (compiled, jar, common, slf4j)))
            is_kraft = numbers(release) >= KRAFT_SINCE
            one = said_by(classpath, "BROKER" if is_kraft else "ZK_BROKER")
            if is_kraft and numbers(release) < WITHOUT_ZOOKEEPER_SINCE:
                one["zookeeper_apis"] = said_by(classpath, "ZK_BROKER")["apis"]
            for key in NOT_SERVED.get(release, ()):
                del one["apis"][str(key)]
            one["errors"] = sorted({*one["errors"], *BROKER_ERRORS.get(release, ())})
            found[release] = {"version": version, **one}
    return found


def old_schemas(newest: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The schemas of the versions that the newest release does not have, of the APIs that it has."""
    index = json.loads((ROOT / "index.json").read_text())["apis"]
    found: dict[str, dict[str, Any]] = {}
    with zipfile.ZipFile(jars()[NEWEST_WITH_OLD_VERSIONS]) as jar:
        for key, names in index.items():
            if key not in newest["apis"]:
                continue
            for name in (names["request"], names["response"]):
                entry = f"common/message/{name}.json"
                if entry not in jar.namelist():
                    continue
                schema = facts(json.loads(without_comments(jar.read(entry).decode())), SCHEMA_KEYS)
                present = json.loads((ROOT / "messages" / f"{name}.json").read_text())["validVersions"]
                first, lowest = (int(text.partition("-")[0]) for text in (schema["validVersions"], present))
                is_share = 76 <= int(key) <= 79  # versions that were never released
                if first < lowest and not is_share:
                    schema["validVersions"] = str(first) if first == lowest - 1 else f"{first}-{lowest - 1}"
                    found[f"old/{name}.json"] = schema
    return found


def rendered_releases(found: dict[str, Any]) -> str:
    """One line for each list, because there are many numbers."""
    lines = []
    for release, facts_of in found.items():
        parts = ",\n".join(f'  "{name}": {json.dumps(value)}' for name, value in facts_of.items())
        lines.append(f' "{release}": {{\n{parts}\n }}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main(arguments: list[str]) -> int:
    found = releases()
    wanted = {"releases.json": rendered_releases(found)}
    *earlier, newest_name = found
    newest = found[newest_name]
    table = derive_earlier_configs.derive({name: found[name]["version"] for name in earlier})
    wanted["earlier_configs.json"] = derive_earlier_configs.rendered(table)
    wanted |= {path: rendered(schema) for path, schema in old_schemas(newest).items()}
    present = {
        str(p.relative_to(ROOT)): p.read_text()
        for p in (*ROOT.glob("old/*.json"), *(ROOT / name for name in NOT_SCHEMAS))
    }
    if "--check" in arguments:
        wrong = sorted(p for p in wanted.keys() | present.keys() if wanted.get(p) != present.get(p))
        print(f"{len(wanted)} files of releases, {len(wrong)} differ", *wrong[:10])
        return 1 if wrong else 0
    for path in present.keys() - wanted.keys():
        (ROOT / path).unlink()
    (ROOT / "old").mkdir(exist_ok=True)
    for path, text in wanted.items():
        (ROOT / path).write_text(text)
    print(f"{len(wanted)} files of releases written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
