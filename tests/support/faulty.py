"""A broker with faults, requests, and whether rules match them."""

from __future__ import annotations

from typing import Any

from ottla.broker.lab.faults.rules import Fault, Faults, Rule
from ottla.broker.lab.shapes import parse
from ottla.protocol import messages as m

from .ask import batch, produce_message
from .connected import Client, ConnectedWorld
from .lab import LabWorld
from .topic_world import create

GROUPS = "ListGroups", 4, m.ListGroupsRequest()
HEARTBEAT = "Heartbeat", 4, m.HeartbeatRequest(group_id="g", member_id="m")
METADATA = "Metadata", 12, m.MetadataRequest(topics=None)


class Faulty:
    """A broker with a client and faults."""

    def __init__(self, *topics: str) -> None:
        self.world = ConnectedWorld(
            listeners="PLAINTEXT://127.0.0.1:9092,INSIDE://127.0.0.1:9093",
            listener_security_protocol_map="PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT",
        )
        self.client = self.world.connect()
        self.faults = LabWorld(self.world).lab.part(Faults)
        for topic in topics:
            create(self.world, topic, 2)

    def add(self, **fault: Any) -> Rule:
        return self.faults.add(parse(Fault, fault))

    def ask(self, name: str, version: int, message: Any) -> Any:
        return self.client.ask(name, version, message)

    def produce(self, topic: str, partition: int = 0, acks: int = -1) -> int:
        """Produces a record; returns the error code."""
        reply = self.ask("Produce", 9, produce_message(topic, batch(b"value"), partition, acks))
        code: int = reply.responses[0].partition_responses[0].error_code
        return code


def error(name: str, **more: Any) -> dict[str, Any]:
    return {"kind": "error", "error": name, **more}


DELAY = {"kind": "delay", "ms": 10}


def applied_to(faulty: Faulty, rule: Rule, name: str, version: int, message: Any, client: Client | None = None) -> bool:
    """Whether a rule is applied to a request."""
    before = rule.applied
    (client or faulty.client).send(name, version, message)
    faulty.world.pass_ms(100)
    return rule.applied > before


TOPICS = m.MetadataRequest.MetadataRequestTopic
OFFSETS = m.OffsetFetchRequest.OffsetFetchRequestGroup
REQUESTS: list[tuple[dict[str, Any], tuple[str, int, Any], bool]] = [
    ({"api": "Heartbeat"}, HEARTBEAT, True),
    ({"api": "heartbeat,ListGroups"}, HEARTBEAT, True),
    ({"api": "12"}, HEARTBEAT, True),
    ({"api": "ListGroups"}, HEARTBEAT, False),
    ({}, HEARTBEAT, True),
    ({"versions": "4"}, HEARTBEAT, True),
    ({"versions": "3-5"}, HEARTBEAT, True),
    ({"versions": "5+"}, HEARTBEAT, False),
    ({"client_id": "cli*"}, HEARTBEAT, True),
    ({"client_id": "other"}, HEARTBEAT, False),
    ({"principal": "User:ANONYMOUS"}, HEARTBEAT, True),
    ({"principal": "User:alice"}, HEARTBEAT, False),
    ({"listener": "PLAINTEXT"}, HEARTBEAT, True),
    ({"listener": "INSIDE"}, HEARTBEAT, False),
    ({"node": 1}, HEARTBEAT, True),
    ({"node": 2}, HEARTBEAT, False),
    ({"group": "g"}, HEARTBEAT, True),
    ({"group": "g", "member": "m"}, HEARTBEAT, True),
    ({"group": "[fg]"}, HEARTBEAT, True),
    ({"group": "h"}, HEARTBEAT, False),
    ({"group": "g", "member": "n"}, HEARTBEAT, False),
    ({"topic": "a"}, HEARTBEAT, False),
    ({"topic": "a"}, ("Metadata", 12, m.MetadataRequest(topics=[TOPICS(name="b"), TOPICS(name="a")])), True),
    ({"topic": "c"}, ("Metadata", 12, m.MetadataRequest(topics=[TOPICS(name="b"), TOPICS(name="a")])), False),
    ({"topic": "a", "partition": 1}, ("Produce", 9, produce_message("a", batch(b"1"), 1)), True),
    ({"topic": "a", "partition": 0}, ("Produce", 9, produce_message("a", batch(b"1"), 1)), False),
    ({"topic": "b", "partition": 1}, ("Produce", 9, produce_message("a", batch(b"1"), 1)), False),
    ({"group": "g"}, ("FindCoordinator", 4, m.FindCoordinatorRequest(coordinator_keys=["f", "g"])), True),
    ({"transactional_id": "t*"}, ("InitProducerId", 4, m.InitProducerIdRequest(transactional_id="tx")), True),
    ({"transactional_id": "t*"}, ("InitProducerId", 4, m.InitProducerIdRequest(transactional_id=None)), False),
    ({"group": "g", "member": "m"}, ("OffsetFetch", 9, m.OffsetFetchRequest(groups=[OFFSETS(group_id="g")])), False),
]
