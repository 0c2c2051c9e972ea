"""What earlier releases list in ApiVersions, and what they answer to requests of brokers and controllers that a client
sends. Kafka's answers were written down once, as in `test_earlier_releases`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest
from ottla.protocol import messages as m

from ..support.differential import Pair
from ..support.stories.earlier import earlier_brokers

pytestmark = pytest.mark.slow
release, kafka, ours, settled = earlier_brokers(("0.10.2", "2.7", "3.2"))
HEAD = struct.Struct(">hhih")
EPOCH_OVER = struct.pack(">ii", 1, 0)  # of the controller, which has 1 now
ALIVE, ABSENT = 1, 99
NO_EPOCH = struct.pack(">q", -1)
LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA, CONTROLLED_SHUTDOWN = range(4, 8)
ALTER_PARTITION, ALLOCATE_PRODUCER_IDS = 56, 67
FLEXIBLE_SINCE = {LEADER_AND_ISR: 4, STOP_REPLICA: 2, UPDATE_METADATA: 6, CONTROLLED_SHUTDOWN: 3}
LISTENER = "listener.name.plaintext"
KEYS: list[tuple[str, dict[str, str]]] = [
    *(("1", {f"{LISTENER}.max.connections": value}) for value in ("0", "x", "-1", "10")),
    *(("1", {f"{LISTENER}.max.connection.creation.rate": value}) for value in ("0", "-1", "1000")),
    *(("1", {f"{LISTENER}.num.network.threads": value}) for value in ("0", "99")),
    *(("1", {f"{LISTENER}.ssl.client.auth": value}) for value in ("sometimes", "none")),
    ("1", {"listener.name.nowhere.max.connections": "x"}),
    ("1", {"listener.name.nowhere.max.connections": "0"}),
    ("1", {"max.connection.creation.rate": "0"}),
    ("1", {"ssl.client.auth": "none"}),
    ("1", {"ssl.keystore.type": "JKS"}),
    *(("1", {"listener.security.protocol.map": value}) for value in ("x", "X:PLAINTEXT", "PLAINTEXT:SSL")),
    ("1", {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,X:PLAINTEXT"}),
    ("1", {"listeners": "OTHER://127.0.0.1:9092"}),
    ("1", {"advertised.listeners": "x"}),
    ("", {"advertised.listeners": "PLAINTEXT://127.0.0.1:9092"}),
    ("", {f"{LISTENER}.max.connections": "x"}),
    ("", {f"{LISTENER}.max.connections": "10"}),
    ("", {f"{LISTENER}.max.connections.per.ip": "5"}),
    ("", {"listener.name.nowhere.num.network.threads": "2"}),
]
"""Dynamic values of one broker, or of all."""
BETWEEN_NODES = (52, 53, 54, 58, 59, 62, 63, 64, 70, 73)


def lists(count: int, is_flexible: bool) -> bytes:
    """Empty lists, and no tags."""
    return b"\1" * count + b"\0" if is_flexible else bytes(4) * count


def frame(key: int, version: int, body: bytes) -> bytes:
    is_flexible = version >= FLEXIBLE_SINCE.get(key, 0)
    if (key, version) == (CONTROLLED_SHUTDOWN, 0):
        return HEAD.pack(key, version, 7, 0)[:-2] + body
    return HEAD.pack(key, version, 7, 1) + b"x" + (b"\0" if is_flexible else b"") + body


def of_a_controller(key: int, version: int) -> bytes:
    """A request of a controller whose epoch is over, about nothing."""
    is_flexible = version >= FLEXIBLE_SINCE[key]
    if key == LEADER_AND_ISR:
        between = (NO_EPOCH if version >= 2 else b"") + (b"\0" if version >= 5 else b"")
        return frame(key, version, EPOCH_OVER + between + lists(2, is_flexible))
    if key == STOP_REPLICA:
        between = (NO_EPOCH if version >= 1 else b"") + (b"\0" if version < 3 else b"")
        return frame(key, version, EPOCH_OVER + between + lists(1, is_flexible))
    between = NO_EPOCH if version >= 5 else b""
    return frame(key, version, EPOCH_OVER + between + lists(2, is_flexible))


def of_a_broker(version: int, number: int) -> bytes:
    more = (NO_EPOCH if version >= 2 else b"") + (b"\0" if version >= FLEXIBLE_SINCE[CONTROLLED_SHUTDOWN] else b"")
    return frame(CONTROLLED_SHUTDOWN, version, struct.pack(">i", number) + more)


def listed(pair: Pair, version: int = 0) -> dict[int, tuple[int, int]]:
    asked = m.ApiVersionsRequest(client_software_name="client", client_software_version="1")
    found = pair.ask("ApiVersions", version, asked)[1]
    return {one.api_key: (one.min_version, one.max_version) for one in found.api_keys}


def by_version(versions: tuple[int, int] | None) -> Iterator[int]:
    yield from () if versions is None else range(versions[0], versions[1] + 1)


def test_what_is_listed(pair: Pair) -> None:
    for version in by_version(listed(pair)[18]):
        listed(pair, version)
    assert pair.errors("ApiVersions") == {"NONE"}


def test_requests_of_brokers_and_controllers(pair: Pair) -> None:
    known = listed(pair)
    frames = [
        of_a_controller(key, version)
        for key in (LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA)
        for version in by_version(known[key])
    ]
    frames += [of_a_broker(version, ABSENT) for version in by_version(known[CONTROLLED_SHUTDOWN])]
    for number in (ALIVE, ABSENT):
        start = struct.pack(">i", number) + NO_EPOCH
        frames += [frame(ALTER_PARTITION, one, start + b"\1\0") for one in by_version(known.get(ALTER_PARTITION))]
        frames += [frame(ALLOCATE_PRODUCER_IDS, one, start + b"\0") for one in by_version(known.get(67))]
    frames += [frame(key, 0, bytes(20)) for key in BETWEEN_NODES]
    for sent in frames:
        mine, theirs = pair.raw(sent)
        assert mine == theirs, sent.hex()


def without_words(reply: Any) -> None:
    for one in reply.responses:
        one.error_message = None


def test_keys_of_listeners(pair: Pair, release: str) -> None:
    """With the bounds of the release; the words are other ones then."""
    pair.trims["IncrementalAlterConfigs"] = without_words
    r = m.IncrementalAlterConfigsRequest
    for broker, values in KEYS if release != "0.10.2" else KEYS[:1]:
        configs = [r.AlterableConfig(name=name, value=value) for name, value in values.items()]
        asked = r(resources=[r.AlterConfigsResource(resource_type=4, resource_name=broker, configs=configs)])
        pair.ask("IncrementalAlterConfigs", 1, asked)
        for config in configs:
            config.value, config.config_operation = None, 1
        pair.ask("IncrementalAlterConfigs", 1, asked)
    known = {"closed"} if release == "0.10.2" else {"NONE", "INVALID_REQUEST"}
    assert pair.errors("IncrementalAlterConfigs") == known
