"""Logs to which nothing can be appended for a while, and whose disk has not failed."""

from __future__ import annotations

import errno
import os

from ottla.broker.replica.partition import Partition
from ottla.protocol.buffers import WritableData
from ottla.protocol.control import Marker
from ottla.protocol.records import BatchAt
from ottla.storage.batch_info import Appended

from .world import World


def fail_appends(world: World, *partitions: Partition) -> None:
    """Lets appends to the logs of these partitions fail (KAFKA_STORAGE_ERROR), and those to all others succeed."""

    def append(
        partition: Partition, data: WritableData, batches: list[BatchAt], now_ms: int, marker: Marker | None = None
    ) -> Appended:
        if partition in partitions:
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return partition.append(data, batches, now_ms, marker)

    world.broker.appender.append_to_log = append
