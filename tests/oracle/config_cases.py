"""Values for every key of brokers, topics and groups, good, bad and borderline, and keys that do not go together;
Kafka's answers beside them.

python -m tests.oracle.config_cases     asks Kafka's own classes again, and writes `recorded/configs.json`
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ottla.protocol.config_def import ConfigKey, keys

from .recorded_cases import lines

RECORDED = Path(__file__).parent / "recorded" / "configs.json"
FORMS = (
    "",
    "1.5",
    "0x10",
    " 7 ",
    "9223372036854775808",
    "1_000",
    "+5",
    "1e3",
    "NaN",
    "nan",
    "Infinity",
    "0.5f",
    "TRUE",
    "yes",
    " true ",
    " ",
)
"""How a value may be written, which the parser of a type decides: asked of one key of each type."""
NUMBERS = ("-2", "-1", "0", "1", "2147483648")
WORDS: dict[str, tuple[str, ...]] = {
    "INT": NUMBERS,
    "LONG": NUMBERS,
    "SHORT": ("-1", "0", "1", "32768"),
    "DOUBLE": ("-0.1", "0", "0.5", "1.1"),
    "BOOLEAN": ("maybe", "true"),
    "LIST": ("", "a", "a,a", "a,,b", "a, b"),
    "CLASS": ("no.such.Class",),
    "STRING": ("", "nonsense"),
    "PASSWORD": ("x",),
}
CONTROLLER = "CONTROLLER://127.0.0.1:9093"
CLIENTS = "PLAINTEXT://127.0.0.1:9092"
MAP = "listener.security.protocol.map"
ALL = "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"
PLAINTEXT_AND_SSL = {"listeners": f"{CLIENTS},SSL://127.0.0.1:9095,{CONTROLLER}", MAP: ALL}
ONLY_SASL = {
    "listeners": f"SASL_PLAINTEXT://127.0.0.1:9095,{CONTROLLER}",
    MAP: ALL,
    "inter.broker.listener.name": "SASL_PLAINTEXT",
}
SECURITY: tuple[dict[str, str], ...] = (
    {"listeners": f"SSL://127.0.0.1:9092,{CONTROLLER}"},
    {"listeners": f"SSL://127.0.0.1:9092,{CONTROLLER}", MAP: ALL, "inter.broker.listener.name": "SSL"},
    {"listeners": f"SSL://127.0.0.1:9092,{CONTROLLER}", MAP: ALL, "security.inter.broker.protocol": "SSL"},
    {"listeners": f"{CLIENTS},SSL://127.0.0.1:9095,{CONTROLLER}"},
    PLAINTEXT_AND_SSL,
    {**PLAINTEXT_AND_SSL, "inter.broker.listener.name": "X"},
    {**PLAINTEXT_AND_SSL, "inter.broker.listener.name": "ssl"},
    {**PLAINTEXT_AND_SSL, "inter.broker.listener.name": "SASL_SSL"},
    {**PLAINTEXT_AND_SSL, "inter.broker.listener.name": "SSL", "security.inter.broker.protocol": "SSL"},
    {**PLAINTEXT_AND_SSL, "advertised.listeners": "SSL://h:1", "inter.broker.listener.name": "SSL"},
    {**PLAINTEXT_AND_SSL, "advertised.listeners": "SSL://h:1", "inter.broker.listener.name": "PLAINTEXT"},
    ONLY_SASL,
    {**ONLY_SASL, "sasl.enabled.mechanisms": "PLAIN"},
    {**ONLY_SASL, "sasl.enabled.mechanisms": "PLAIN", "sasl.mechanism.inter.broker.protocol": "PLAIN"},
    {
        "listeners": f"A://127.0.0.1:9092,{CONTROLLER}",
        MAP: "a:Ssl,A:ssl,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "a",
    },
    {"inter.broker.listener.name": ""},
    {"inter.broker.listener.name": "CONTROLLER"},
    {"security.inter.broker.protocol": "ssl"},
    {"security.inter.broker.protocol": "SASL_SSL"},
    {MAP: "nonsense"},
    {MAP: ":SSL"},
    {MAP: "PLAINTEXT:"},
    {MAP: "PLAINTEXT:PLAINTEXT,"},
    {MAP: ""},
)
TOGETHER: tuple[dict[str, str], ...] = (
    *SECURITY,
    {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"},
    {
        "listeners": f"{CLIENTS},A://127.0.0.1:9092,{CONTROLLER}",
        "listener.security.protocol.map": "A:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    },
    {
        "listeners": f"{CLIENTS},A://127.0.0.1:0,{CONTROLLER}",
        "listener.security.protocol.map": "A:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    },
    {
        "listeners": f"{CLIENTS},A://127.0.0.1:9095,{CONTROLLER}",
        "listener.security.protocol.map": "A:PLAINTEXT,PLAINTEXT:NONE",
    },
    {"listeners": f"{CLIENTS},A://127.0.0.1:9095,{CONTROLLER}"},
    {"listeners": f"{CLIENTS},PLAINTEXT://127.0.0.1:9095,{CONTROLLER}"},
    {"listeners": f"{CLIENTS},PLAINTEXT://[::1]:9092,{CONTROLLER}"},
    {"listeners": f"{CLIENTS}, {CONTROLLER}, "},
    {"listeners": "plaintext://127.0.0.1:9092,controller://127.0.0.1:9093"},
    {"listeners": "nonsense"},
    {"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"},
    {"advertised.listeners": "A://h:9092"},
    {"advertised.listeners": "PLAINTEXT://h:9092,CONTROLLER://h:9093"},
    {"advertised.listeners": "PLAINTEXT://h:0"},
    {"advertised.listeners": "PLAINTEXT://:9092"},
    {"advertised.listeners": "nonsense"},
    {"controller.quorum.voters": "1@h:9093"},
    {"controller.quorum.voters": "1@h:99999"},
    {"controller.quorum.bootstrap.servers": "h:99999"},
    {"process.roles": "controller"},
    {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:5"},
    {"max.connections.per.ip.overrides": "a b:5"},
    {"max.connections.per.ip.overrides": "h:x"},
    {"cordoned.log.dirs": "*"},
    {"cordoned.log.dirs": "*,data"},
    {"cordoned.log.dirs": "data"},
    {"log.roll.hours": "1", "log.roll.ms": "0"},
    {"log.cleaner.threads": "200"},
    {"log.cleaner.threads": "127"},
    {"replica.fetch.wait.max.ms": "30001", "replica.lag.time.max.ms": "30000"},
    {"replica.fetch.wait.max.ms": "30000", "replica.lag.time.max.ms": "30000"},
    {"queued.max.request.bytes": "104857599"},
    {"queued.max.request.bytes": "100", "socket.request.max.bytes": "100"},
    {"connections.max.idle.ms": "100"},
    {"connections.max.idle.ms": "101"},
    {"connections.max.idle.ms": "5", "connection.failed.authentication.delay.ms": "4"},
    {"group.share.assignors": "simple,simple"},
    {"group.share.assignors": "org.apache.kafka.coordinator.group.assignor.SimpleAssignor"},
    {"group.consumer.assignors": "uniform,uniform"},
    {"group.consumer.assignors": "org.apache.kafka.coordinator.group.assignor.RangeAssignor"},
    {"group.streams.assignors": "sticky,sticky"},
    {"group.coordinator.rebalance.protocols": "classic,classic"},
    {"group.coordinator.rebalance.protocols": "consumer"},
    {"group.share.record.lock.duration.ms": "50000", "group.share.max.record.lock.duration.ms": "40000"},
    {"group.share.record.lock.duration.ms": "50000", "group.share.max.record.lock.duration.ms": "50000"},
    {"group.share.min.record.lock.duration.ms": "30001", "group.share.record.lock.duration.ms": "30000"},
    {"group.share.delivery.count.limit": "10", "group.share.max.delivery.count.limit": "9"},
    {"group.share.delivery.count.limit": "4", "group.share.min.delivery.count.limit": "5"},
    {"group.share.partition.max.record.locks": "2001", "group.share.max.partition.max.record.locks": "2000"},
    {"group.share.partition.max.record.locks": "100", "group.share.min.partition.max.record.locks": "101"},
    {"group.share.max.share.sessions": "199"},
    {"group.share.max.share.sessions": "2", "group.share.max.size": "2"},
    {"broker.id": "1"},
    {"broker.id": "6"},
    {"log.dir": "x", "log.dirs": "y"},
)


def _probes(key: ConfigKey, is_first: bool) -> Iterator[str]:
    if is_first:
        yield from FORMS
    yield from WORDS[key.type]
    for number in (
        re.findall(r"-?\d+(?:\.\d+)?", key.valid or "") if key.type in ("INT", "LONG", "SHORT", "DOUBLE") else ()
    ):
        for step in (-1, 0, 1):
            yield str((float if key.type == "DOUBLE" else int)(number) + step)
    for choices in re.findall(r"\[([\w, ]+)\]", key.valid or ""):
        first = choices.split(", ")[0]
        yield from (first, first.upper(), first.lower(), ",".join(choices.split(", ")), f"{first},{first}")


def cases() -> list[dict[str, Any]]:
    """What is asked: {"kind": broker|topic|group, "settings" or "own": values by key}."""
    found: list[dict[str, Any]] = []
    for kind, values in (("broker", "settings"), ("topic", "own"), ("group", "own")):
        known = list(keys(kind).items()) if kind == "group" else sorted(keys(kind).items())
        first = {key.type: name for name, key in reversed(known)}
        for name, key in known:
            found += [
                {"kind": kind, values: {name: text}} for text in dict.fromkeys(_probes(key, first[key.type] == name))
            ]
    return found + [{"kind": "broker", "settings": settings} for settings in TOGETHER]


def name_of(case: dict[str, Any]) -> str:
    values = case.get("settings") or case["own"]
    return f"{case['kind']} " + " ".join(f"{name}={text}" for name, text in values.items())


def ask(asked: list[dict[str, Any]]) -> list[str | None]:
    """Kafka's words about each case, or None where it takes the values."""
    return [json.loads(line)["error"] for line in lines("Configs", asked, '{"error":')]


def recorded() -> dict[str, str]:
    """Kafka's words by the name of each case that it refuses."""
    loaded: dict[str, str] = json.loads(RECORDED.read_text())
    return loaded


def main() -> int:
    asked = cases()
    refused = {name_of(case): words for case, words in zip(asked, ask(asked), strict=True) if words is not None}
    RECORDED.write_text(json.dumps(refused, indent=0, ensure_ascii=False, sort_keys=True) + "\n")
    print(f"{len(asked)} cases, {len(refused)} of which Kafka refuses")
    return 0


if __name__ == "__main__":
    sys.exit(main())
