"""What a producer can be told."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

SYNC, ASYNC = "sync", "async"


@dataclass(frozen=True, slots=True)
class ProducerConfig:
    """The properties of the producer, with underscores for dots and units last. The defaults are those of 0.8.2.

    Brokers are found by `broker_list` (`host:port,host:port`; metadata.broker.list) or by `zk_connect` (zk.connect),
    which needs `ottla[zookeeper]`. An asynchronous producer sends when it has `batch_size` messages
    (batch.num.messages), or after `queue_time_ms` (queue.buffering.max.ms).

    `queue_enqueue_timeout_ms`: how long `send` waits while the queue of `queue_size` (queue.buffering.max.messages) is
    full; 0: not at all, -1: until there is room. `topic_metadata_refresh_interval_ms`: -1 for only after failures.

    Raises ValueError for what contradicts itself.
    """

    broker_list: str = ""
    zk_connect: str = ""
    producer_type: Literal["sync", "async"] = "sync"
    request_required_acks: int = 0
    request_timeout_ms: int = 10_000
    client_id: str = ""
    compression_codec: Literal["none", "gzip", "snappy", "lz4"] = "none"
    compressed_topics: Collection[str] = ()
    message_send_max_retries: int = 3
    retry_backoff_ms: int = 100
    topic_metadata_refresh_interval_ms: int = 600_000
    queue_time_ms: int = 5000
    queue_size: int = 10_000
    queue_enqueue_timeout_ms: int = -1
    batch_size: int = 200

    def __post_init__(self) -> None:
        if bool(self.broker_list) == bool(self.zk_connect):
            raise ValueError("a producer finds brokers by broker_list or by zk_connect")
        if self.producer_type not in (SYNC, ASYNC):
            raise ValueError(f"producer_type is {SYNC} or {ASYNC}, not {self.producer_type}")
        if self.compression_codec not in ("none", "gzip", "snappy", "lz4"):
            raise ValueError(f"there is no codec {self.compression_codec}")
        if self.batch_size < 1 or self.queue_size < 1 or self.queue_time_ms < 0:
            raise ValueError("batch_size and queue_size are at least 1, queue_time_ms at least 0")
