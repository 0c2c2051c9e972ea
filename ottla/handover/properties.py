"""Writes a `server.properties` for each node, with which Apache Kafka starts as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..broker.config.config import AUTHORIZER_KEYS
from ..coordinator.metadata.registration import Endpoint
from ..java_properties import escaped
from ..protocol.config_def import keys
from ..protocol.text import host_and_port
from .layout import INTERNAL_REPLICAS, NewNode

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
LISTENER_PREFIX = "listener.name."
OF_THE_NODE = frozenset(
    (
        *("process.roles", "node.id", "broker.id", "controller.quorum.bootstrap.servers", "controller.quorum.voters"),
        *("listeners", "advertised.listeners", "listener.security.protocol.map", "controller.listener.names"),
        *("inter.broker.listener.name", "security.inter.broker.protocol", "log.dirs", "log.dir", "broker.rack"),
        *("metadata.log.dir", "auto.include.jmx.reporter"),
    )
)


def taken_over(given: Mapping[str, str]) -> dict[str, str]:
    """Returns the keys of a configuration of ottla that Kafka knows and that are not the node's own."""
    known = {*keys("broker"), *AUTHORIZER_KEYS}
    return {
        key: value
        for key, value in given.items()
        if key not in OF_THE_NODE and (key in known or key.startswith(LISTENER_PREFIX))
    }


def left_out(given: Mapping[str, str]) -> list[str]:
    """Returns the keys that Kafka does not know."""
    return sorted(given.keys() - taken_over(given).keys() - OF_THE_NODE)


def properties_of(node: NewNode, nodes: Sequence[NewNode], given: Mapping[str, str]) -> str:
    """Returns the text of a node's file."""
    own = {one.name: PROTOCOLS[one.security_protocol] for one in node.endpoints}
    inter_broker = next((name for name, protocol in own.items() if protocol == "PLAINTEXT"), next(iter(own)))
    copies = min(INTERNAL_REPLICAS, len(nodes))
    values: dict[str, object] = {
        "process.roles": "broker,controller",
        "node.id": node.id,
        "controller.quorum.bootstrap.servers": ",".join(address(one.controller) for one in nodes),
        "controller.listener.names": node.controller.name,
        "listeners": ",".join(f"{one.name}://{address(one)}" for one in (*node.endpoints, node.controller)),
        "advertised.listeners": ",".join(f"{one.name}://{address(one)}" for one in node.endpoints),
        "listener.security.protocol.map": ",".join(
            f"{name}:{protocol}" for name, protocol in {**own, node.controller.name: "PLAINTEXT"}.items()
        ),
        "inter.broker.listener.name": inter_broker,
        "log.dirs": node.path,
        **({"broker.rack": node.rack} if node.rack is not None else {}),
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": min(2, copies),
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": min(2, copies),
        **taken_over(given),
    }
    return "".join(f"{key}={escaped(str(value))}\n" for key, value in values.items())


def address(one: Endpoint) -> str:
    """Returns host and port as they are written in a configuration."""
    return host_and_port(one.host, one.port)
