"""What a producer does with a batch: serializes, chooses partitions, sends to their leaders, and tries again."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from ..protocol import messages
from ..protocol.errors import CODES, MalformedMessage
from .cluster import Cluster
from .errors import BrokerUnreachable, FailedToSendMessage, KafkaError
from .message import CODECS, Message, encoded
from .partitioning import DefaultEncoder, DefaultPartitioner, Encoder, Partitioner
from .producer_config import ProducerConfig

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class ProducerData(Generic[K, V]):
    """Messages for a topic. They go to the partition of the key; without a key each goes to a random one."""

    topic: str
    data: Sequence[V]
    key: K | None = None


class EventHandler(Protocol[K, V]):
    """What a producer calls with each batch; `handle` raises if it is not sent."""

    def handle(self, events: Sequence[ProducerData[K, V]]) -> None: ...

    def close(self) -> None: ...


@dataclass(slots=True)
class _Routed(Generic[K]):
    topic: str
    key: K | None
    message: Message
    partition: int = -1


@dataclass(slots=True)
class _Failures(Generic[K]):
    left: list[_Routed[K]] = field(default_factory=list)
    reason: str = ""


class DefaultEventHandler(Generic[K, V]):
    """Serializes with `encoder` and `key_encoder`, and asks `partitioner` which partition has a key. What a broker did
    not take is sent again after `retry_backoff_ms`, when the leaders were asked for again.
    """

    def __init__(
        self,
        config: ProducerConfig,
        cluster: Cluster,
        encoder: Encoder[V] | None = None,
        key_encoder: Encoder[K] | None = None,
        partitioner: Partitioner[K] | None = None,
        chance: random.Random | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._config, self._cluster = config, cluster
        self._encoder: Encoder[V] = encoder or DefaultEncoder()  # type: ignore[assignment]  # the default is for bytes
        self._key_encoder: Encoder[K] = key_encoder or DefaultEncoder()  # type: ignore[assignment]
        self._partitioner: Partitioner[K] = partitioner or DefaultPartitioner()  # type: ignore[assignment]
        self._chance, self._sleep = chance or random.Random(), sleep
        self._topics: set[str] = set()
        self._refreshed_s = 0.0

    def handle(self, events: Sequence[ProducerData[K, V]]) -> None:
        """Raises FailedToSendMessage, and what encoders and partitioner raise."""
        left = [_Routed(one.topic, one.key, self._serialized(one.key, value)) for one in events for value in one.data]
        tries = self._config.message_send_max_retries + 1
        failures: _Failures[K] = _Failures(left)
        for number in range(tries):
            if number:
                self._sleep(self._config.retry_backoff_ms / 1000)
            failures = self._tried(failures.left, is_again=number > 0)
            if not failures.left:
                return
        raise FailedToSendMessage(len(failures.left), tries, failures.reason)

    def close(self) -> None:
        self._cluster.close()

    def _serialized(self, key: K | None, value: V) -> Message:
        made = self._encoder.to_message(value)
        if key is None or made.key is not None:
            return made
        return Message(made.value, self._key_encoder.to_message(key).value)

    def _tried(self, routed: list[_Routed[K]], is_again: bool) -> _Failures[K]:
        failures: _Failures[K] = _Failures()
        try:
            self._refresh({one.topic for one in routed}, is_again)
        except BrokerUnreachable as error:
            return _Failures(routed, str(error))
        by_leader: dict[int, list[_Routed[K]]] = {}
        for one in routed:
            leader = self._leader_for(one)
            if leader < 0:
                failures.left.append(one)
                failures.reason = f"{one.topic} has no leader"
            else:
                by_leader.setdefault(leader, []).append(one)
        for leader, some in by_leader.items():
            self._send(leader, some, failures)
        return failures

    def _refresh(self, topics: set[str], is_again: bool) -> None:
        now_s, interval_s = time.monotonic(), self._config.topic_metadata_refresh_interval_ms / 1000
        is_old = 0 <= interval_s < now_s - self._refreshed_s
        if is_again or is_old or not topics <= self._topics:
            self._topics |= topics
            self._cluster.refresh(self._topics)
            self._refreshed_s = now_s

    def _leader_for(self, one: _Routed[K]) -> int:
        """Chooses the partition, and returns its leader; -1 if there is none."""
        leaders = self._cluster.leaders(one.topic)
        partitions = list(leaders)
        if one.key is None:
            partitions = [partition for partition in partitions if leaders[partition] >= 0]
        if not partitions:
            return -1
        count = len(partitions)
        index = self._chance.randrange(count) if one.key is None else self._partitioner.partition(one.key, count)
        if not 0 <= index < count:
            raise ValueError(f"the partitioner chose {index} of {count} partitions")
        one.partition = partitions[index]
        return leaders[one.partition]

    def _send(self, leader: int, routed: list[_Routed[K]], failures: _Failures[K]) -> None:
        parts: dict[tuple[str, int], list[_Routed[K]]] = {}
        for one in routed:
            parts.setdefault((one.topic, one.partition), []).append(one)
        try:
            refused = self._produced(leader, parts)
        except (OSError, MalformedMessage, BrokerUnreachable) as error:
            failures.left += routed
            failures.reason = f"broker {leader}: {error}"
            return
        for place, code in refused.items():
            failures.left += parts[place]
            failures.reason = str(KafkaError(code, f"{place[0]}-{place[1]}"))

    def _produced(self, leader: int, parts: dict[tuple[str, int], list[_Routed[K]]]) -> dict[tuple[str, int], int]:
        """Sends a request; returns the partitions that were refused, with their errors."""
        connection = self._cluster.connection_at(self._cluster.address_of(leader))
        version, r = connection.version_of("Produce"), messages.ProduceRequest
        now_ms, topics = time.time_ns() // 1_000_000, dict[str, list[messages.ProduceRequest.PartitionProduceData]]()
        for (topic, partition), some in parts.items():
            data = encoded([one.message for one in some], version, self._codec_of(topic), now_ms)
            topics.setdefault(topic, []).append(r.PartitionProduceData(index=partition, records=data))
        request = r(
            acks=self._config.request_required_acks,
            timeout_ms=self._config.request_timeout_ms,
            topic_data=[r.TopicProduceData(name=topic, partition_data=rows) for topic, rows in topics.items()],
        )
        if self._config.request_required_acks == 0:
            connection.tell("Produce", version, request)
            return {}
        reply = connection.ask("Produce", version, request)
        codes = {(t.name, p.index): int(p.error_code) for t in reply.responses for p in t.partition_responses}
        found = {place: codes.get(place, CODES["UNKNOWN_SERVER_ERROR"]) for place in parts}
        return {place: code for place, code in found.items() if code}

    def _codec_of(self, topic: str) -> int:
        chosen = self._config.compressed_topics
        return CODECS[self._config.compression_codec] if not chosen or topic in chosen else CODECS["none"]
