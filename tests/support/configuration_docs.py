"""Writes `docs/reference/configuration.md`: every key of the broker, from Kafka's facts and from what the code reads.

python -m tests.support.configuration_docs [--check]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from ottla.broker.config.checks import DEFAULT_ONLY
from ottla.broker.config.config import AUTHORIZER_KEYS, LOCAL_DEFAULTS, OWN_KEYS, SYSTEM_PROPERTIES, ZOOKEEPER_KEYS
from ottla.broker.config.docs import OWN_DOCS, TOPIC_DOCS
from ottla.broker.config.effects import without_effect
from ottla.coordinator.metadata.client_metrics import client_metrics_keys
from ottla.protocol.config_def import ConfigKey, dynamic_broker_keys, keys

PATH = Path(__file__).resolve().parents[2] / "docs" / "reference" / "configuration.md"
HEAD = """# Configuration

[How to configure the broker](../how-to/configure.md) says where values come from. The names, types, defaults and bounds
of Kafka's keys are Kafka's. Every value is checked at start as Kafka checks it, alone and against other keys. What
Kafka refuses ends the start with exit code 2 and one sentence: file, line, key and what was found. An unknown key is
ignored with a warning that names the nearest known key. A key that is set and has no effect warns with the reason,
except for those of which Kafka requires one (`controller.quorum.bootstrap.servers`, `controller.quorum.voters`).

With several nodes, `ottla.node.2.` before a key gives its value to node 2 alone: `ottla.node.2.log.retention.ms=60000`.
That is for defaults of topics, `listeners`, `advertised.listeners`, `broker.rack`, `max.connections`,
`max.connections.per.ip`, its `.overrides`, and `max.connection.creation.rate`.

This page is computed from the code (`python -m tests.support.configuration_docs`), and a test compares them.
"""
AUTHORIZER_DOCS = {
    "allow.everyone.if.no.acl.found": "Whether everyone may use a resource for which there is no ACL.",
    "super.users": "Principals with all rights, separated by `;`: `User:admin;User:ops`.",
}
SYSTEM_DOCS = {
    "java.security.auth.login.config": (
        "A JAAS file, of which SASL listeners without `sasl.jaas.config` use the section `LISTENER.KafkaServer` (the "
        "listener in lower case) or `KafkaServer`. For Kafka it is a system property, `-D…` in `KAFKA_OPTS`, and so it "
        "may be here."
    ),
    "org.apache.kafka.sasl.oauthbearer.allowed.urls": (
        "The URLs that `sasl.oauthbearer.jwks.endpoint.url` may be, separated by commas. For Kafka it is a system "
        "property, `-D…` in `KAFKA_OPTS`, and so it may be here."
    ),
}
ZOOKEEPER_DOCS = {
    "zookeeper.connect": (
        "The ZooKeeper in which a broker of an [earlier release](../how-to/earlier-releases.md) is registered: "
        "`HOST:PORT,HOST:PORT/PATH`. Kafka had this key until 3.9; it has no effect unless such a release is emulated."
    ),
    "zookeeper.connection.timeout.ms": (
        "How long the start waits for ZooKeeper; by default `zookeeper.session.timeout.ms`."
    ),
    "zookeeper.set.acl": "Only who logs in to ZooKeeper as the broker may write what it makes there.",
    "zookeeper.session.timeout.ms": "How long the broker stays registered after ZooKeeper has lost it.",
}
GROUPS = """
A group without a value of its own has the broker's: `group.consumer.session.timeout.ms` is the default of
`consumer.session.timeout.ms`. `kafka-configs --entity-type groups` and AdminClient set values.
"""
WITHOUT_EFFECT = {
    "local.retention.*": "ottla has no tiered storage",
    "remote.*": "ottla has no tiered storage",
    "streams.num.warmup.replicas": "tasks of streams groups do not warm up yet, as in Kafka 4.4",
}
"""Keys of topics and groups that are stored and shown, and the reason why they have no effect."""


def _default(key: ConfigKey) -> str:
    ours = LOCAL_DEFAULTS.get(key.name)
    if ours is not None and ours != key.default:
        return f"`{ours}` (Kafka: {f'`{key.default}`' if key.default else 'none'})"
    return f"`{key.default}`" if key.default else ""


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _listed(kind: str) -> Iterator[ConfigKey]:
    return (key for _, key in sorted(keys(kind).items()) if not key.internal)


def reason(name: str) -> str | None:
    """Why a key of topics or groups has no effect; None if it has one."""
    return next((why for pattern, why in WITHOUT_EFFECT.items() if fnmatchcase(name, pattern)), None)


def _meaning(key: ConfigKey) -> str:
    why = reason(key.name)
    return TOPIC_DOCS[key.name] + ("" if why is None else f" No effect: {why}.")


def rendered() -> str:
    """The whole file."""
    known = dict(sorted(keys("broker").items()))
    shown = {name: key for name, key in known.items() if not key.internal}
    read = {name: key for name, key in shown.items() if without_effect(name) is None and name not in DEFAULT_ONLY}
    silent: dict[str, list[str]] = {}
    for name, key in known.items():
        why = without_effect(name)
        if why is not None and not key.internal:
            silent.setdefault(why, []).append(name)
    lines = [HEAD, "## Keys of ottla's own", "", _row("key", "type", "default", "meaning"), _row(*["---"] * 4)]
    lines += [
        _row(f"`{name}`", key.type.lower(), _default(key), OWN_DOCS[name]) for name, key in sorted(OWN_KEYS.items())
    ]
    lines += ["", "## Keys of the authorizer", "", _row("key", "type", "default", "meaning"), _row(*["---"] * 4)]
    lines += [
        _row(f"`{name}`", key.type.lower(), _default(key), AUTHORIZER_DOCS[name])
        for name, key in sorted(AUTHORIZER_KEYS.items())
    ]
    lines += ["", "## Keys of ZooKeeper", "", _row("key", "type", "default", "meaning"), _row(*["---"] * 4)]
    lines += [
        _row(f"`{name}`", key.type.lower(), _default(key), ZOOKEEPER_DOCS[name]) for name, key in ZOOKEEPER_KEYS.items()
    ]
    lines += ["", "## Java's system properties", "", _row("key", "type", "default", "meaning"), _row(*["---"] * 4)]
    lines += [
        _row(f"`{name}`", key.type.lower(), _default(key), SYSTEM_DOCS[name]) for name, key in SYSTEM_PROPERTIES.items()
    ]
    lines += [
        "",
        f"## Kafka's keys that have an effect ({len(read)})",
        "",
        "Dynamic keys can be changed while the broker runs.",
        "",
    ]
    lines += [_row("key", "type", "default", "allowed", "dynamic"), _row(*["---"] * 5)]
    dynamic = dynamic_broker_keys()
    lines += [
        _row(f"`{n}`", k.type.lower(), _default(k), k.valid or "", "yes" if n in dynamic else "")
        for n, k in read.items()
    ]
    lines += ["", f"## Kafka's keys that are checked and have no effect ({sum(map(len, silent.values()))})", ""]
    for why, names in silent.items():
        lines += [f"**Because {why}:**", "", ", ".join(f"`{name}`" for name in names), ""]
    fixed = {name: key for name, key in shown.items() if name in DEFAULT_ONLY}
    lines += [
        f"## Kafka's keys that can only have their default ({len(fixed)})",
        "",
        "Another value ends the start.",
        "",
    ]
    lines += [_row("key", "type", "default", "because"), _row(*["---"] * 4)]
    lines += [_row(f"`{n}`", k.type.lower(), _default(k), DEFAULT_ONLY[n].partition(";")[0]) for n, k in fixed.items()]
    lines += _of_resources(known)
    return "\n".join(lines) + "\n"


def _of_resources(known: Mapping[str, ConfigKey]) -> list[str]:
    """The keys of topics, groups and client metrics. `known`: the broker's."""
    lines = ["", "## Keys of topics", "", _row("key", "type", "default", "allowed", "meaning"), _row(*["---"] * 5)]
    lines += [
        _row(f"`{key.name}`", key.type.lower(), _default(key), key.valid or "", _meaning(key))
        for key in _listed("topic")
    ]
    lines += ["", "## Keys of groups", GROUPS, _row("key", "type", "default", "allowed", "effect"), _row(*["---"] * 5)]
    lines += [
        _row(
            f"`{key.name}`",
            key.type.lower(),
            _default(known.get(f"group.{key.name}", key)),
            key.valid or "",
            f"no: {why}" if (why := reason(key.name)) is not None else "yes",
        )
        for key in _listed("group")
    ]
    lines += ["", "## Keys of client metrics", "", "All have an effect.", ""]
    lines += [_row("key", "type", "default"), _row(*["---"] * 3)]
    lines += [_row(f"`{key.name}`", key.type.lower(), _default(key)) for key in client_metrics_keys().values()]
    return lines


def main(arguments: list[str]) -> int:
    if "--check" in arguments:
        return 0 if PATH.read_text() == rendered() else 1
    PATH.write_text(rendered())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
