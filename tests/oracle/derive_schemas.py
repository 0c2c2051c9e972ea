"""Derives `schemas/` from the jars of Apache Kafka: facts only (names, types, versions, tags, defaults), no prose.

    python -m tests.oracle.derive_schemas [--check | --index]

`--check` writes nothing and fails when a file differs from what the jars say. `--index` needs no jars: it only writes
`index.json` again, from the files in `schemas/`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

from .jars import classpath, jar_paths

ROOT = Path(__file__).resolve().parents[2] / "schemas"
MODULES = (
    "kafka-clients",
    "kafka-group-coordinator",
    "kafka-share-coordinator",
    "kafka-transaction-coordinator",
    "kafka-metadata",
    "kafka-raft",
    "kafka-storage",
)
SCHEMA_KEYS = ("apiKey", "type", "listeners", "name", "validVersions", "flexibleVersions", "latestVersionUnstable")
FIELD_KEYS = (
    "name",
    "type",
    "versions",
    "nullableVersions",
    "taggedVersions",
    "tag",
    "default",
    "ignorable",
    "mapKey",
    "entityType",
    "flexibleVersions",
)


def without_comments(text: str) -> str:
    """JSON from Kafka's JSON with `//` comments, which stand on lines of their own or after a value."""
    return re.sub(r'("(?:\\.|[^"\\])*")|//[^\n]*', lambda found: found.group(1) or "", text)


def facts(source: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    kept = {key: source[key] for key in keys if key in source}
    for nested in ("fields", "commonStructs"):
        if source.get(nested):
            kept[nested] = [facts(field, FIELD_KEYS) for field in source[nested]]
    return kept


def derive() -> dict[str, dict[str, Any]]:
    """Every schema of the jars by its path below `schemas/`, and `index.json`."""
    schemas: dict[str, dict[str, Any]] = {}
    for module in MODULES:
        (path,) = [p for p in jar_paths("broker") if re.fullmatch(rf"{module}-[0-9.]+\.jar", p.name)]
        with zipfile.ZipFile(path) as jar:
            for entry in jar.namelist():
                if not re.fullmatch(r"(common/)?(message|metadata)/\w+\.json", entry):
                    continue
                schema = facts(json.loads(without_comments(jar.read(entry).decode())), SCHEMA_KEYS)
                if schema["validVersions"] == "none":
                    continue
                folder = "messages" if schema["type"] in ("request", "response", "header") else "records"
                schemas[f"{folder}/{schema['name']}.json"] = schema
    schemas["index.json"] = index(schemas)
    schemas |= other_facts()
    return dict(sorted(schemas.items()))


def other_facts() -> dict[str, dict[str, Any]]:
    """What Kafka keeps in classes instead of schemas: error codes, features, configuration keys."""
    command = ["java", "-cp", classpath("broker"), str(ROOT.parent / "tests" / "oracle" / "java" / "Facts.java")]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=300).stdout)
    features = {name: levels for name, levels in found["features"].items() if "test.feature" not in name}
    features["metadata.version"] = found["metadata_version"]
    configs = {
        "topic": found["topic_configs"],
        "synonyms": found["topic_config_synonyms"],
        "broker": found["broker_configs"],
        "dynamic": found["dynamic_broker_configs"],
        "group": found["group_configs"],
    }
    return {"errors.json": found["errors"], "features.json": features, "configs.json": configs}


def index(schemas: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What is needed before a schema is opened: the names by API key, and the records by kind and by key."""
    apis: dict[int, dict[str, Any]] = {}
    records: dict[str, dict[str, Any]] = {}
    for schema in schemas.values():
        kind, key, name = schema["type"], schema.get("apiKey", -1), schema["name"]
        if kind == "request":
            apis[key] = {
                "request": name,
                "response": f"{name.removesuffix('Request')}Response",
                "versions": schema["validVersions"],
                "unstable": schema.get("latestVersionUnstable", False),
            }
        elif kind not in ("response", "header"):
            records.setdefault(kind, {})[name] = None if key == -1 else key
    names = {kind: dict(sorted(found.items())) for kind, found in sorted(records.items())}
    return {"apis": {str(key): apis[key] for key in sorted(apis)}, "records": names}


def rendered(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=1) + "\n"


def write_index() -> None:
    """Writes `index.json` again, from the schemas that are in the folder."""
    paths = [path for folder in ("messages", "records") for path in sorted((ROOT / folder).glob("*.json"))]
    (ROOT / "index.json").write_text(rendered(index({path.name: json.loads(path.read_text()) for path in paths})))


def main(arguments: list[str]) -> int:
    if "--index" in arguments:
        write_index()
        return 0
    wanted = {path: rendered(schema) for path, schema in derive().items()}
    of_releases = {*ROOT.glob("old/*.json"), ROOT / "releases.json"}  # which `derive_releases` makes
    others = {*of_releases, ROOT / "earlier_configs.json"}  # what keys were before 4.0, which no jar lists in one place
    present = {str(p.relative_to(ROOT)): p.read_text() for p in ROOT.rglob("*.json") if p not in others}
    if "--check" in arguments:
        wrong = sorted(p for p in wanted.keys() | present.keys() if wanted.get(p) != present.get(p))
        print(f"{len(wanted)} schemas, {len(wrong)} differ", *wrong[:10])
        return 1 if wrong else 0
    for path in present.keys() - wanted.keys():
        (ROOT / path).unlink()
    for path, text in wanted.items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text)
    print(f"{len(wanted)} files written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
