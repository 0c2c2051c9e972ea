"""The topic configuration of a log: Kafka's keys in snake_case, parsed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..protocol.records import MAGIC

FOREVER = 2**63 - 1
# Between two index entries; with `index.interval.bytes=2147483647` a fetch would look at every batch of its segment.
INDEX_INTERVAL_BYTES_MAX = 1 << 16


class LogSettings(NamedTuple):
    """The topic configs that a log uses, with Kafka 4.4's defaults."""

    cleanup_policy: tuple[str, ...] = ("delete",)
    delete_retention_ms: int = 86_400_000
    file_delete_delay_ms: int = 60_000
    flush_messages: int = FOREVER
    flush_ms: int = FOREVER
    index_interval_bytes: int = 4096
    max_compaction_lag_ms: int = FOREVER
    max_message_bytes: int = 1_048_588
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    preallocate: bool = False
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    segment_bytes: int = 1 << 30
    segment_index_bytes: int = 10 << 20
    segment_jitter_ms: int = 0
    segment_ms: int = 604_800_000
    waits_for_flush_ms: bool = False  # whether acks=all waits until `flush.ms` has made records durable
    message_format: int = MAGIC  # the version of messages that are appended; below 2 only in emulated releases

    @property
    def bytes_in_advance(self) -> int:
        """The preallocated size of a new segment's file."""
        return self.segment_bytes if self.preallocate else 0

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def is_deleted(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def is_append_time(self) -> bool:
        return self.message_timestamp_type == "LogAppendTime"

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> LogSettings:
        """Makes settings from parsed values under Kafka's names; ignores keys that a log does not use. Indexes may have
        more entries than Kafka's. The policies may be in a list.
        """
        names = {name.replace("_", "."): name for name in cls._fields}
        known = {names[key]: value for key, value in values.items() if key in names}
        if "cleanup_policy" in known:
            known["cleanup_policy"] = tuple(known["cleanup_policy"])
        made = cls(**known)
        return made._replace(index_interval_bytes=min(made.index_interval_bytes, INDEX_INTERVAL_BYTES_MAX))
