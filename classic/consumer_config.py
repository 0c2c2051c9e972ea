"""What a connector can be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SMALLEST, LARGEST = "smallest", "largest"
ZOOKEEPER, KAFKA = "zookeeper", "kafka"


@dataclass(frozen=True, slots=True)
class ConsumerConfig:
    """The properties of the high-level consumer, with underscores for dots. The defaults are those of 0.8.2.

    `zookeeper_connect`: `host:port,host:port/chroot`. `consumer_id`: None for one of its own. `auto_offset_reset`:
    where to begin without a committed offset, or with one that does not exist. `consumer_timeout_ms`: how long a stream
    waits for a message before it raises ConsumerTimeout; -1: forever. `rebalance_max_retries`: for the first rebalance;
    later ones are tried until they succeed. `offsets_storage`: where offsets are committed. `dual_commit_enabled`: in
    both places, and the larger is taken; None: if the storage is Kafka.

    Raises ValueError.
    """

    group_id: str
    zookeeper_connect: str
    consumer_id: str | None = None
    client_id: str = ""
    socket_timeout_ms: int = 30_000
    fetch_message_max_bytes: int = 1 << 20
    fetch_min_bytes: int = 1
    fetch_wait_max_ms: int = 100
    queued_max_message_chunks: int = 2
    auto_commit_enable: bool = True
    auto_commit_interval_ms: int = 60_000
    auto_offset_reset: Literal["smallest", "largest"] = "largest"
    consumer_timeout_ms: int = -1
    exclude_internal_topics: bool = True
    rebalance_max_retries: int = 4
    rebalance_backoff_ms: int = 2000
    refresh_leader_backoff_ms: int = 200
    zookeeper_session_timeout_ms: int = 6000
    zookeeper_connection_timeout_ms: int = 6000
    offsets_storage: Literal["zookeeper", "kafka"] = "zookeeper"
    dual_commit_enabled: bool | None = None
    offsets_channel_socket_timeout_ms: int = 10_000
    offsets_channel_backoff_ms: int = 1000
    offsets_commit_max_retries: int = 5

    def __post_init__(self) -> None:
        if not self.group_id:
            raise ValueError("a consumer has a group_id")
        if self.auto_offset_reset not in (SMALLEST, LARGEST):
            raise ValueError(f"auto_offset_reset is {SMALLEST} or {LARGEST}, not {self.auto_offset_reset}")
        if self.offsets_storage not in (ZOOKEEPER, KAFKA):
            raise ValueError(f"offsets_storage is {ZOOKEEPER} or {KAFKA}, not {self.offsets_storage}")
        if self.queued_max_message_chunks < 1 or self.fetch_message_max_bytes < 1:
            raise ValueError("queued_max_message_chunks and fetch_message_max_bytes are at least 1")

    @property
    def is_dual(self) -> bool:
        return self.offsets_storage == KAFKA if self.dual_commit_enabled is None else self.dual_commit_enabled
