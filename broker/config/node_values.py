"""What the configuration gives to single nodes: `ottla.node.2.log.retention.ms=60000` is of node 2 alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ...protocol.config_def import ConfigInvalid, topic_synonyms
from . import relations

if TYPE_CHECKING:
    from .config import Config

PREFIX = "ottla.node."
_KEY = re.compile(re.escape(PREFIX) + r"(?P<node>[0-9]{1,9})\.(?P<key>.+)")
LISTENERS = ("listeners", "advertised.listeners")
OF_ONE_NODE = (
    "broker.rack",
    *LISTENERS,
    "max.connection.creation.rate",
    "max.connections",
    "max.connections.per.ip",
    "max.connections.per.ip.overrides",
)
"""The keys that one node can be given, besides the defaults of topics."""


def of_node(config: Config, node_id: int) -> dict[str, str]:
    """Returns what a node is given, by Kafka's keys."""
    prefix = f"{PREFIX}{node_id}."
    return {name.removeprefix(prefix): text for name, text in config.given.items() if name.startswith(prefix)}


def parsed(config: Config, given: Mapping[str, str]) -> dict[str, object]:
    """Raises ConfigInvalid."""
    return {name: config.broker_keys[name].parse(text) for name, text in given.items()}


def faults(config: Config) -> Iterator[tuple[str, str]]:
    """Yields what is wrong with keys of single nodes: the key, and the words."""
    named = [name for name in config.given if name.startswith(PREFIX)]
    if not named:
        return
    first, count = config.node_id, config["ottla.nodes"]
    known = {*OF_ONE_NODE, *(name for names in topic_synonyms().values() for name in names)}
    nodes: dict[int, str] = {}
    for name in named:
        found = _KEY.fullmatch(name)
        if found is None or found["key"] not in known:
            yield name, f"{name}: no key of one node; these are defaults of topics, and {', '.join(OF_ONE_NODE)}"
            return
        node = int(found["node"])
        if not first <= node < first + count:
            yield name, f"{name}: there is no node {node}, only {first} to {first + count - 1}"
            return
        nodes[node] = name
    for node, name in nodes.items():
        yield from _faults_of(config, name, of_node(config, node))


def _faults_of(config: Config, name: str, given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yields what is wrong with the values of a node. `name`: one of its keys."""
    try:
        values = parsed(config, given)
    except ConfigInvalid as error:
        yield name, str(error)
        return
    wrong = relations.refused({**config.values, **values})
    if wrong is not None:
        yield name, wrong[1]
    of_clients = {one.name for one in config.listeners}
    for key in LISTENERS:
        listed = values.get(key)
        names = {text.partition("://")[0].upper() for text in listed} if isinstance(listed, list) else of_clients
        if names != of_clients:
            yield name, f"{key} of a node must have the names of the first node's: {', '.join(sorted(of_clients))}"
