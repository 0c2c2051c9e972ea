"""The embedded protocol of consumers: what JoinGroup and SyncGroup carry as bytes for groups of the protocol type
`consumer`. Each message begins with its version; one that is newer than the newest known version is read as that.
"""

from __future__ import annotations

from typing import Any

from ...protocol import codec, messages
from ...protocol.errors import MalformedMessage
from ...protocol.outlines import outline
from ..remembered import remembered

PROTOCOL_TYPE = "consumer"


def _parsed(name: str, data: bytes, version_max: int | None = None) -> Any:
    if len(data) < 2:
        raise MalformedMessage(name, f"{len(data)} bytes")
    version = int.from_bytes(data[:2], "big", signed=True)
    if version < 0:
        raise MalformedMessage(name, f"version {version}")
    return codec.parse(name, min(version, outline(name).valid.high if version_max is None else version_max), data, 2)


def subscription(data: bytes, version_max: int | None = None) -> messages.ConsumerProtocolSubscription:
    """`version_max`: the newest version of which all fields have to be there. Raises MalformedMessage."""
    found: messages.ConsumerProtocolSubscription = _parsed("ConsumerProtocolSubscription", data, version_max)
    return found


@remembered(500)
def subscribed_topics(data: bytes) -> frozenset[str]:
    """Returns the topics of a member's metadata. Raises MalformedMessage.

    Kafka reads them as of version 0, with which all versions begin, so that metadata which ends there is good in any.
    The members of a group mostly subscribe to the same topics, and do so again in each rebalance.
    """
    return frozenset(subscription(data, version_max=0).topics)


def assignment(data: bytes) -> messages.ConsumerProtocolAssignment:
    """Raises MalformedMessage."""
    found: messages.ConsumerProtocolAssignment = _parsed("ConsumerProtocolAssignment", data)
    return found


def version_of(data: bytes) -> int:
    """The version with which a member's metadata begins. MalformedMessage."""
    if len(data) < 2:
        raise MalformedMessage("ConsumerProtocolSubscription", f"{len(data)} bytes")
    return min(int.from_bytes(data[:2], "big", signed=True), outline("ConsumerProtocolAssignment").valid.high)


def build_assignment(by_topic: dict[str, list[int]], version: int) -> bytes:
    a = messages.ConsumerProtocolAssignment
    message = a(assigned_partitions=[a.TopicPartition(topic=topic, partitions=ps) for topic, ps in by_topic.items()])
    return bytes(codec.build("ConsumerProtocolAssignment", version, message, bytearray(version.to_bytes(2, "big"))))
