"""`ConsumerConnector`: the high-level consumer, which shares the partitions of topics with the others of its group."""

from __future__ import annotations

import logging
import re
import socket
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Self, TypeVar

from .balance.assignment import Subscription, TopicPartition, thread_id
from .balance.filters import TopicFilter
from .balance.member import Member
from .balance.offsets import DualOffsets, KafkaOffsets, Storage, ZooKeeperOffsets
from .balance.operations import CommitToKafka, FetchFromKafka, Lost, Operation, Resume, SessionExpired, Steps, Suspend
from .cluster import Cluster
from .consumer_config import KAFKA, ConsumerConfig
from .errors import ConsumerRebalanceFailed, MessageStreamsExist
from .fetchers import Fetching
from .offset_manager import OffsetManager
from .streams import Decoder, KafkaStream, PartitionPosition
from .zookeeper import ZooKeeper

T = TypeVar("T")
AnyDecoder = Decoder[Any]  # what a decoder returns is known to the application alone
AnyStream = KafkaStream[Any, Any]
_log = logging.getLogger(__name__)


def _as_it_is(data: bytes | None) -> Any:
    return data


def _consumer_id(config: ConsumerConfig) -> str:
    own = config.consumer_id or f"{socket.gethostname()}-{time.time_ns() // 1_000_000}-{uuid.uuid4().hex[:8]}"
    return f"{config.group_id}_{own}"


class ConsumerConnector:
    """A consumer of a group, with its session in ZooKeeper. Needs `ottla[zookeeper]`.

    Raises kazoo's errors if there is no ZooKeeper.
    """

    def __init__(self, config: ConsumerConfig) -> None:
        self._config = config
        self._changed = threading.Condition()  # also for `_is_due`
        self._is_due = False
        self._stopping = threading.Event()
        self._rebalancing = threading.RLock()  # commits and rebalances exclude each other
        self._zookeeper = ZooKeeper(
            config.zookeeper_connect,
            config.zookeeper_session_timeout_ms / 1000,
            config.zookeeper_connection_timeout_ms / 1000,
            self._notified,
        )
        client_id = config.client_id or config.group_id
        self._cluster = Cluster(self._zookeeper.brokers, client_id, config.socket_timeout_ms / 1000)
        manager = Cluster(self._zookeeper.brokers, client_id, config.offsets_channel_socket_timeout_ms / 1000)
        tries, backoff_s = 1 + config.offsets_commit_max_retries, config.offsets_channel_backoff_ms / 1000
        self._manager = OffsetManager(manager, config.group_id, tries, backoff_s)
        self._clusters = (self._cluster, manager)
        self._streams: dict[tuple[str, str], AnyStream] = {}  # by thread and topic; the topic of a filter: ""
        self._fetching: Fetching | None = None
        self._member: Member | None = None
        self._threads: list[threading.Thread] = []

    def create_message_streams(
        self,
        topic_count_map: Mapping[str, int],
        key_decoder: AnyDecoder = _as_it_is,
        value_decoder: AnyDecoder = _as_it_is,
    ) -> dict[str, list[AnyStream]]:
        """Subscribes to topics, each with a number of streams, and rebalances; returns the streams by topic. A
        partition goes to one stream. The decoders make keys and values of bytes, which they are by default.

        Raises MessageStreamsExist if there are streams already, and ConsumerRebalanceFailed; the connector is shut down
        then.
        """
        consumer = self._unsubscribed()
        found: dict[str, list[AnyStream]] = {}
        for topic, count in topic_count_map.items():
            found[topic] = [self._new_stream(consumer, topic, i, key_decoder, value_decoder) for i in range(count)]
        self._start(consumer, Subscription(dict(topic_count_map)))
        return found

    def create_message_streams_by_filter(
        self,
        topic_filter: TopicFilter,
        num_streams: int = 1,
        key_decoder: AnyDecoder = _as_it_is,
        value_decoder: AnyDecoder = _as_it_is,
    ) -> list[AnyStream]:
        """Subscribes to the topics that a filter allows, now and later, and rebalances; returns the streams, each of
        which may have messages of several topics. Raises as `create_message_streams`.
        """
        consumer = self._unsubscribed()
        found = [self._new_stream(consumer, "", i, key_decoder, value_decoder) for i in range(num_streams)]
        self._start(consumer, Subscription({}, topic_filter, num_streams))
        return found

    def commit_offsets(self) -> bool:
        """Commits the offsets of all messages that were handed out; returns whether that is done. If it is not, such as
        while the consumer has no session, it is done with the next commit.
        """
        with self._rebalancing:
            if self._member is None or self._fetching is None:
                return False
            return self._drive(self._member.commit(_consumed(self._fetching)))

    def shutdown(self) -> None:
        """Ends the streams, commits (`auto_commit_enable`), and leaves the group."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        self._notified()
        for one in self._threads:
            one.join()
        with self._rebalancing:
            for stream in self._streams.values():
                stream.close()
            if self._member is not None:
                self._leave(self._member)
        self._zookeeper.close()
        for cluster in self._clusters:
            cluster.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown()

    # the streams

    def _unsubscribed(self) -> str:
        if self._streams or self._member is not None:
            raise MessageStreamsExist("a connector makes streams once")
        return _consumer_id(self._config)

    def _new_stream(
        self, consumer: str, topic: str, index: int, key_decoder: AnyDecoder, value_decoder: AnyDecoder
    ) -> AnyStream:
        thread, c = thread_id(consumer, index), self._config
        stream = KafkaStream(key_decoder, value_decoder, c.queued_max_message_chunks, c.consumer_timeout_ms, thread)
        self._streams[thread, topic] = stream
        return stream

    def _start(self, consumer: str, subscription: Subscription) -> None:
        c = self._config
        now_ms = time.time_ns() // 1_000_000
        storage = _storage(c)
        self._member = Member(c.group_id, consumer, subscription, storage, now_ms, c.exclude_internal_topics)
        for number in range(1 + c.rebalance_max_retries):
            if number:
                self._stopping.wait(c.rebalance_backoff_ms / 1000)
            if self._rebalanced(self._member):
                break
        else:
            self.shutdown()
            raise ConsumerRebalanceFailed(f"{consumer} did not get its partitions")
        targets: list[Callable[[], None]] = [self._keep_balanced]
        if c.auto_commit_enable:
            targets.append(self._keep_committed)
        for target in targets:
            self._threads.append(threading.Thread(target=target, name=f"ottla-classic{target.__name__}", daemon=True))
            self._threads[-1].start()

    # the algorithm, driven

    def _notified(self) -> None:
        with self._changed:
            self._is_due = True
            self._changed.notify_all()

    def _keep_balanced(self) -> None:
        assert self._member is not None
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_due or self._stopping.is_set())
                self._is_due = False
            while not self._stopping.is_set() and not self._rebalanced(self._member):
                self._stopping.wait(self._config.rebalance_backoff_ms / 1000)
            if self._stopping.is_set():
                return

    def _rebalanced(self, member: Member) -> bool:
        with self._rebalancing:
            if self._zookeeper.take_expired():
                member.expired()
            try:
                return self._drive(member.rebalance())
            except (ValueError, re.error) as error:  # of what other consumers and brokers wrote
                _log.error("%s cannot rebalance: %s", member.consumer, error)
                return False

    def _keep_committed(self) -> None:
        while not self._stopping.wait(self._config.auto_commit_interval_ms / 1000):
            self.commit_offsets()

    def _leave(self, member: Member) -> None:
        if not self._config.auto_commit_enable:
            self._suspend()
            return
        for _ in range(1 + self._config.rebalance_max_retries):
            if self._drive(member.leave()):
                return
            time.sleep(self._config.rebalance_backoff_ms / 1000)
        _log.error("%s left without a commit", member.consumer)

    def _drive(self, steps: Steps[T]) -> T:
        try:
            operation = next(steps)
            while True:
                try:
                    answer = self._done(operation)
                except (Lost, SessionExpired) as error:
                    operation = steps.throw(error)
                else:
                    operation = steps.send(answer)
        except StopIteration as ended:
            found: T = ended.value
            return found

    def _done(self, operation: Operation) -> object:
        match operation:
            case Suspend():
                return self._suspend()
            case Resume(starts):
                self._resume(starts)
                return None
            case CommitToKafka(offsets):
                return self._manager.commit(offsets)
            case FetchFromKafka(partitions):
                return self._manager.fetch(partitions)
            case _:
                return self._zookeeper.do(operation)

    def _suspend(self) -> dict[TopicPartition, int]:
        if self._fetching is None:
            return {}
        self._fetching.stop()
        stopped, self._fetching = self._fetching, None
        return _consumed(stopped)

    def _resume(self, starts: Mapping[TopicPartition, tuple[str, int | None]]) -> None:
        positions = []
        for place, (thread, offset) in starts.items():
            stream = self._streams.get((thread, place.topic)) or self._streams[thread, ""]
            positions.append(PartitionPosition(place, stream, offset))
        self._fetching = Fetching(self._config, self._cluster, positions)


def _consumed(fetching: Fetching) -> dict[TopicPartition, int]:
    return {one.place: one.consumed for one in fetching.positions if one.consumed is not None}


def _storage(config: ConsumerConfig) -> Storage:
    if config.is_dual:
        return DualOffsets(config.group_id)
    return KafkaOffsets() if config.offsets_storage == KAFKA else ZooKeeperOffsets(config.group_id)
