"""Calls that fail: those of files, and those of functions in which anything may go wrong."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest import mock

from ottla.broker.controller import controller as metadata
from ottla.broker.replica import appender, flusher, partition, replica_manager
from ottla.broker.shards.host import ShardHost
from ottla.broker.share import share_partition_leader
from ottla.coordinator import runtime as coordinator_runtime
from ottla.coordinator.group import format as group_format
from ottla.coordinator.group import shard as group_shard
from ottla.coordinator.group.assignors import uniform
from ottla.coordinator.share import partition as share_engine
from ottla.coordinator.share import shard as share_shard
from ottla.coordinator.transaction import shard as transaction_shard
from ottla.storage import log as storage_log
from ottla.storage import producers as storage_producers
from ottla.storage import segment as storage_segment

from ..support.memory_files import MemFiles, MemHandle

BUGS: tuple[Callable[[], Exception], ...] = tuple(
    partial(kind, "of a test") for kind in (RuntimeError, ValueError, KeyError, MemoryError, RecursionError)
)


ERRORS: tuple[Callable[[], Exception], ...] = (
    *(partial(OSError, code, os.strerror(code)) for code in (errno.EIO, errno.ENOSPC, errno.EMFILE, errno.EACCES)),
    *BUGS,
)


# Functions in which anything may go wrong: encoding, appending, replaying, moving high watermarks, timers, engines, a
# user's assignor
FUNCTIONS: tuple[tuple[Any, str], ...] = (
    (coordinator_runtime, "encode_batch"),
    (coordinator_runtime.Runtime, "flush"),
    (coordinator_runtime.Runtime, "advance"),
    (coordinator_runtime.Runtime, "tick"),
    (group_format.GroupFormat, "encode"),
    (group_shard.GroupShard, "replay"),
    (group_shard.GroupShard, "on_loaded"),
    (group_shard.GroupShard, "expire"),
    (transaction_shard.TransactionShard, "replay"),
    (transaction_shard.TransactionShard, "complete"),
    (share_shard.ShareShard, "replay"),
    (share_engine.SharePartition, "acquire"),
    (share_engine.SharePartition, "acknowledge"),
    (share_engine.SharePartition, "complete"),
    (share_engine.SharePartition, "expire"),
    (share_partition_leader.SharePartitionLeader, "note"),
    (uniform, "assign"),
    (ShardHost, "flush"),
    (ShardHost, "_committed"),
    (partition.Partition, "advance"),
    (partition.Partition, "append"),
    (partition.Partition, "read"),
    (appender, "check_replicas"),
    (flusher.Flusher, "flush"),
    (replica_manager.ReplicaManager, "apply_retention"),
    (replica_manager.ReplicaManager, "save_checkpoints"),
    (replica_manager.ReplicaManager, "metadata_changed"),
    (metadata.MetadataController, "flush"),
    (storage_log.Log, "append"),
    (storage_log.Log, "flushed"),
    (storage_log.Log, "roll"),
    (storage_log.Log, "read"),
    (storage_segment.Segment, "append"),
    (storage_producers.Producers, "update"),
    (storage_producers.Producers, "end_transaction"),
)


class Injector:
    """Counts calls; the one with the number `at` raises, before its work or after it."""

    def __init__(self, at: int = -1, choice: int = 0, afterwards: bool = False) -> None:
        self.at = at
        self.choice = choice
        self.afterwards = afterwards
        self.count = 0
        self.where = ""

    def call(self, where: str, work: Callable[[], Any], errors: tuple[Callable[[], Exception], ...] = ERRORS) -> Any:
        number, self.count = self.count, self.count + 1
        if number != self.at:
            return work()
        error = errors[self.choice % len(errors)]()
        self.where = f"{where} {'after' if self.afterwards else 'before'} its work: {error!r}"
        if self.afterwards:
            work()
        raise error


class FaultyHandle(MemHandle):
    __slots__ = ("injector", "path")

    def __init__(self, handle: MemHandle, injector: Injector, path: str) -> None:
        super().__init__(handle.files, handle.inode)
        self.injector = injector
        self.path = path

    def read_at(self, position: int, length: int) -> bytes:
        found: bytes = self.injector.call(f"read_at {self.path}", lambda: MemHandle.read_at(self, position, length))
        return found

    def write_at(self, position: int, data: Any) -> None:
        self.injector.call(f"write_at {self.path}", lambda: MemHandle.write_at(self, position, data))

    def truncate(self, size: int) -> None:
        self.injector.call(f"truncate {self.path}", lambda: MemHandle.truncate(self, size))

    def sync(self) -> None:
        self.injector.call(f"sync {self.path}", lambda: MemHandle.sync(self))

    def size(self) -> int:
        found: int = self.injector.call(f"size {self.path}", lambda: MemHandle.size(self))
        return found


def faulty(name: str) -> Callable[..., Any]:
    def call(self: FaultyFiles, path: str, *arguments: Any, **more: Any) -> Any:
        return self.injector.call(f"{name} {path}", lambda: getattr(MemFiles, name)(self, path, *arguments, **more))

    return call


class FaultyFiles(MemFiles):
    """Files of which one call raises."""

    def __init__(self, injector: Injector) -> None:
        super().__init__()
        self.injector = injector

    def open(self, path: str, create: bool = False) -> MemHandle:
        return FaultyHandle(
            self.injector.call(f"open {path}", lambda: MemFiles.open(self, path, create)), self.injector, path
        )

    names = faulty("names")
    make_directory = faulty("make_directory")
    rename = faulty("rename")
    remove = faulty("remove")
    remove_tree = faulty("remove_tree")
    read = faulty("read")
    sync_directory = faulty("sync_directory")


@contextmanager
def functions(injector: Injector) -> Iterator[None]:
    """Has calls of `FUNCTIONS` counted, and one of them raise."""
    with ExitStack() as stack:
        for owner, name in FUNCTIONS:
            real = getattr(owner, name)

            def call(*arguments: Any, real: Any = real, name: str = name, **more: Any) -> Any:
                return injector.call(name, lambda: real(*arguments, **more), BUGS)

            stack.enter_context(mock.patch.object(owner, name, call))
        yield
