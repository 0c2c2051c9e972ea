"""Derives from the jars of earlier releases what their configuration keys were (`schemas/earlier_configs.json`).

Only what differs from the newest release is written: of a key, a list of [last release, facts], in their order. Null
facts say that the key did not exist; facts have the default, the type and the valid values where they differ, and all
of them for a key that does not exist any more. After the last entry of its list, a key is what it is today.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ottla.broker.config.config import converted
from ottla.protocol.config_def import EARLIER_SYNONYMS, ConfigInvalid, ConfigKey

from .derive_schemas import ROOT
from .jars import HERE, classpath

OLDEST, FIRST_DEFINED = "0.8.2", "0.9"  # the defaults and bounds of 0.8.2 are in code, not in definitions
VERSIONS_OF_KAFKA = (
    "inter.broker.protocol.version",
    "log.message.format.version",
    "message.format.version",
)
TYPES_SHOWN_SINCE = (2, 6)  # by DescribeConfigs
Facts = dict[str, Any]
Keys = dict[str, dict[str, Facts]]  # by kind and name


def derive(versions: Mapping[str, str]) -> dict[str, Any]:
    """Returns the table. `versions`: that of the jars of each release but the newest, in their order."""
    present = json.loads((ROOT / "configs.json").read_text())
    present_keys: Keys = {kind: present[kind] for kind in ("broker", "topic", "group")}
    with tempfile.TemporaryDirectory() as compiled:
        found = {name: asked(name, version, Path(compiled)) for name, version in versions.items()}
    _take_bounds(found[OLDEST], found[FIRST_DEFINED])
    for name, keys in found.items():
        _settle(name, keys, {**present["synonyms"], **EARLIER_SYNONYMS})
    table: dict[str, Any] = {}
    for kind in present_keys:
        names = sorted({key for keys in found.values() for key in keys[kind]} | present_keys[kind].keys())
        ranges = {
            key: _ranges({release: keys[kind].get(key) for release, keys in found.items()}, present_keys[kind].get(key))
            for key in names
        }
        table[kind] = {key: some for key, some in ranges.items() if some}
    dynamic = sorted({key for keys in found.values() for key in keys["dynamic"]} | set(present["dynamic"]))
    table["dynamic"] = {
        key: some
        for key in dynamic
        if (
            some := _joined(
                [(release, key in keys["dynamic"]) for release, keys in found.items()], key in present["dynamic"]
            )
        )
    }
    return table


def asked(release: str, version: str, compiled: Path) -> Keys:
    """Asks the classes of a release."""
    program = "OldestConfigs" if release == OLDEST else "EarlierConfigs"
    path = classpath(f"kafka-{version}")
    source = HERE / "java" / f"{program}.java"
    if not (compiled / f"{program}.class").exists():
        subprocess.run(["javac", "-nowarn", "-cp", path, "-d", str(compiled), str(source)], check=True, timeout=120)
    command = ["java", "-cp", f"{compiled}:{path}", program]
    found: Keys = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=120).stdout)
    return found


def _take_bounds(oldest: Keys, following: Keys) -> None:
    """Gives keys the bounds that they had in the release after: those of 0.8.2's brokers are the same in its code, and
    it took any number for its topics.
    """
    for kind in ("broker", "topic"):
        for name, facts in oldest[kind].items():
            valid = following[kind].get(name, {}).get("valid")
            if valid is not None:
                facts.setdefault("valid", valid)


def _settle(release: str, keys: Keys, synonyms: Mapping[str, list[str]]) -> None:
    """Gives topic keys the broker's defaults, and keys that name releases of Kafka their valid values."""
    for name, facts in keys["topic"].items():
        of_broker = (
            (one, keys["broker"][one].get("default")) for one in synonyms.get(name, ()) if one in keys["broker"]
        )
        default = next((converted(one, value) for one, value in of_broker if value is not None), None)
        if default is not None:
            facts["default"] = default
    for kind in ("broker", "topic"):
        for name in VERSIONS_OF_KAFKA:
            if name in keys[kind]:
                keys[kind][name]["valid"] = f"a release of Kafka up to {release}"


def _ranges(by_release: Mapping[str, Facts | None], present: Facts | None) -> list[tuple[str, Facts | None]]:
    found = [
        (release, None if facts is None else _difference(release, facts, present))
        for release, facts in by_release.items()
    ]
    return _joined(found, None if present is None else {})


def _joined(values: list[tuple[str, Any]], present: Any) -> list[tuple[str, Any]]:
    """Returns the last release of each run of equal values, without the run that goes on until today."""
    found: list[tuple[str, Any]] = []
    for release, value in values:
        if found and found[-1][1] == value:
            found.pop()
        found.append((release, value))
    if found and found[-1][1] == present:
        found.pop()
    return found


def _difference(release: str, facts: Facts, present: Facts | None) -> Facts:
    """Returns what differs from the key of today; of what is valid only ranges and choices, which can be compared."""
    if present is None:
        return {name: facts[name] for name in ("type", "default", "valid", "internal") if name in facts}
    found: Facts = {}
    default = facts.get("default")
    if "default" in facts and default != present.get("default"):
        found["default"] = default
    number = tuple(map(int, release.split(".")))
    if number >= TYPES_SHOWN_SINCE and facts["type"] != present["type"]:
        found["type"] = facts["type"]
    if facts.get("internal", False) != present.get("internal", False):
        found["internal"] = facts.get("internal", False)
    valid = facts.get("valid")
    if valid != present.get("valid") and valid is not None and valid.startswith("["):
        found["valid"] = valid
    elif "default" in found and not _takes(present, default):
        found["valid"] = None
    return found


def _takes(present: Facts, default: str | None) -> bool:
    """Whether a key of today takes a default of before."""
    key = ConfigKey("", present["type"], None, present.get("valid"), True, False, present.get("empty", True))
    try:
        key.parse(default)
    except ConfigInvalid:
        return False
    return True


def rendered(table: Mapping[str, Any]) -> str:
    """One line for each key, because there are many."""
    parts = []
    for kind, keys in table.items():
        lines = ",\n".join(f'  "{name}": {json.dumps(value)}' for name, value in keys.items())
        parts.append(f' "{kind}": {{\n{lines}\n }}')
    return "{\n" + ",\n".join(parts) + "\n}\n"
