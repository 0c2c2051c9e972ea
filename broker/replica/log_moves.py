"""Replicas that move to another log directory of their node (AlterReplicaLogDirs, KIP-113).

The log is copied beside the requests for it: pieces in threads, at most as many at a time as
`num.replica.alter.log.dirs.threads` says, and as fast as `replica.alter.log.dirs.io.max.bytes.per.second` allows. Then
the controller writes the new directory into the metadata, the rest is copied at once, and the log goes on in the copy.
A crash leaves the old log, or the old one and a complete copy in the directory that the metadata names.

With several nodes the log moves with its last replica. The other ones have no log of their own: what would be copied is
counted, at the same pace.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator

from ...protocol.errors import ApiError, Errors
from ...storage.copying import PIECE_BYTES, LogCopy, Piece, offset_at
from ...storage.failures import is_passing
from ...storage.layout import (
    DIRECTORY_DELETED,
    FILE_NAME_LENGTH_MAX,
    LOG,
    future_directory,
    parse_future_directory,
    partition_directory,
    retired_directory,
)
from ...storage.log import Log
from ..settings import Settings
from ..steps import off_loop
from ..turn import Turn
from . import directories
from .checkpointing import Checkpoints
from .cleaner import Cleaner
from .directories import LogDirectories, LogDirectory
from .homes import Homes
from .partition import Partition
from .removal import Removal

logger = logging.getLogger("ottla.kafka.server.ReplicaAlterLogDirsManager")
THROTTLE = "replica.alter.log.dirs.io.max.bytes.per.second"
TAIL_BYTES = 256 << 10  # what is copied at once at the end, while nothing is appended
RETRY_MS = 1000
LOOK_AGAIN_MS = 1000  # a change of the throttle takes effect within this time
LONGEST_ID = "0" * 32


class Counted:
    """What is copied of a replica without a log of its own: nothing; it is counted."""

    directory = ""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.size = 0

    @property
    def left(self) -> int:
        return max(self.log.size - self.size, 0)

    @property
    def end_offset(self) -> int:
        before = 0
        for segment in self.log.segments:
            if before + segment.size > self.size:
                return offset_at(segment, self.size - before)
            before += segment.size
        return self.log.end_offset


class Move:
    """A replica on its way into another directory. `node`: that of the replica."""

    def __init__(self, partition: Partition, node: int, source: LogDirectory, target: LogDirectory) -> None:
        self.partition = partition
        self.node = node
        self.source = source
        self.target = target
        self.copy: LogCopy | Counted | None = None
        self.is_running = False  # it has a thread
        self.is_settled = False  # indexes and small files are in the copy
        self.is_cancelled = False
        self.is_leaving = False  # the controller is asked to write the new directory
        self.is_assigned = False  # the metadata names the new directory

    def __repr__(self) -> str:
        return f"Move({self.partition.name}, node {self.node}, to {self.target.path})"


class LogMoves:
    """The moves of all replicas."""

    def __init__(
        self,
        turn: Turn,
        settings: Settings,
        homes: Homes,
        removal: Removal,
        cleaner: Cleaner,
        checkpoints: Checkpoints,
    ) -> None:
        self.turn = turn
        self.settings = settings
        self.homes = homes
        self.partitions = homes.partitions
        self.log_directories: LogDirectories = homes.log_directories
        self.removal = removal
        self.cleaner = cleaner
        self.checkpoints = checkpoints
        self._all: dict[tuple[Partition, int], Move] = {}
        self._running = 0
        self._free_at_ms = 0  # when the throttle allows the next piece

    def __len__(self) -> int:
        return len(self._all)

    # requests

    def ask(self, node: int, topic: str, index: int, path: str) -> None:
        """Begins the move of a replica, or ends it where it asks for the directory in which it is. A partition that
        does not exist yet will be there. Raises ApiError.
        """
        key = topic, index
        if len(future_directory(topic, index, LONGEST_ID)) > FILE_NAME_LENGTH_MAX:
            raise ApiError(Errors.INVALID_TOPIC_EXCEPTION)
        target = self.homes.online(path, node)
        partition = self.partitions.by_name.get(key)
        if partition is None or node not in partition.replicas:
            self.homes.prefer(node, key, target)
            known = partition is not None
            raise ApiError(Errors.REPLICA_NOT_AVAILABLE if known else Errors.UNKNOWN_TOPIC_OR_PARTITION)
        if partition.offline:
            raise ApiError(Errors.KAFKA_STORAGE_ERROR)
        before = self._all.get((partition, node))
        if before is not None and before.target is target:
            return
        if before is not None:
            self._cancel(before)
        if self.homes.of(partition, node) is target:
            return
        if any(one.failed for one in self.log_directories.all):  # another copy may be in the one that failed
            raise ApiError(Errors.KAFKA_STORAGE_ERROR)
        self._begin(Move(partition, node, self.homes.of(partition, node), target))

    def of(self, node: int) -> Iterator[tuple[Move, int, int]]:
        """Yields the moves on a node, with the bytes that are copied, and how many offsets are left."""
        for move in self._all.values():
            copy = move.copy
            if move.node == node:
                end = move.partition.end_offset
                yield move, copy.size if copy else 0, end - (copy.end_offset if copy else move.partition.start_offset)

    def drop(self, partition: Partition) -> None:
        """The partition was deleted, or is offline."""
        for move in [one for one in self._all.values() if one.partition is partition]:
            self._cancel(move)

    def drop_into(self, directory: LogDirectory, node: int) -> None:
        """A directory of a node has failed."""
        for move in [one for one in self._all.values() if one.node == node and directory in (one.source, one.target)]:
            self._cancel(move)

    def resume(self) -> None:
        """Begins again the moves that an earlier process has left, and removes their copies. Raises OSError."""
        node = self.homes.nodes.first.id
        for directory in self.log_directories.online:
            for name in self.log_directories.files.names(directory.path):
                key = parse_future_directory(name)
                if key is None:
                    continue
                self._retire(directory, f"{directory.path}/{name}", *key)
                partition = self.partitions.by_name.get(key)
                home = None if partition is None else self.partitions.directory_of[partition]
                if partition is not None and home is not None and home is not directory and not partition.offline:
                    logger.info("%s: its move to %s begins again", partition.name, directory.path)
                    self._begin(Move(partition, node, home, directory))

    # moves

    def _begin(self, move: Move) -> None:
        self._all[move.partition, move.node] = move
        logger.info("%s: the replica of node %d moves to %s", move.partition.name, move.node, move.target.path)
        try:
            self._prepare(move)
        except OSError as error:
            self._forget(move)
            raise self.log_directories.storage_error(error, move.target) from None
        self._next()

    def _prepare(self, move: Move) -> None:
        """Makes the directory of the copy, once the log is open. Raises OSError; nothing is there then."""
        log, partition = move.partition.log, move.partition
        if move.copy is not None or log is None:
            return
        if not self._is_last(move):
            move.copy = Counted(log)
            return
        name = future_directory(partition.topic, partition.index, self.log_directories.new_id().hex())
        move.copy = copy = LogCopy(log, f"{move.target.path}/{name}")
        self.cleaner.paused.add(partition)  # compaction replaces what was copied
        try:
            copy.create()
        except OSError:
            if self.log_directories.files.exists(copy.directory):
                self._discard(move)
            move.copy = None
            raise

    def _is_last(self, move: Move) -> bool:
        """Whether no other replica stays in the directory of the log, with which the log goes then."""
        others = [self._all.get((move.partition, node)) for node in self.homes.beside(move.partition, move.node)]
        return len(self.homes.nodes) == 1 or all(one is not None and one.is_leaving for one in others)

    def _next(self) -> None:
        """Lets moves begin that wait for a thread."""
        threads = self.settings.config["num.replica.alter.log.dirs.threads"] or len(self.log_directories.all)
        for move in self._all.values():
            if self._running >= threads:
                return
            if not move.is_running:
                move.is_running = True
                self._running += 1
                self.turn.background(self._run(move))

    async def _run(self, move: Move) -> None:
        try:
            while not self._is_over(move):
                try:
                    if await self._advance(move):
                        break
                except OSError as error:
                    if self._failed(move, error):
                        break
                    await self.turn.pause(RETRY_MS)
        finally:
            self._running -= 1
            if not self.turn.stopped:
                if self._all.get((move.partition, move.node)) is move:
                    self._forget(move)
                    self._discard(move)
                self._next()

    def _is_over(self, move: Move) -> bool:
        return move.is_cancelled or move.partition.offline or move.target.failed or self.turn.stopped

    async def _advance(self, move: Move) -> bool:
        """Does a part of a move; returns whether it is done. Raises OSError."""
        copy, partition = move.copy, move.partition
        stays = isinstance(copy, Counted) and not move.is_assigned and self._is_last(move)  # the others have left it
        if copy is not None and (stays or copy.log is not partition.log):  # the log was cut, and opened again
            self._discard(move)
            copy = None
        if copy is None:
            self._prepare(move)
            copy = move.copy
        if copy is None or self.cleaner.is_busy(partition):
            await self.turn.pause(RETRY_MS)
            return False
        rate = self._rate(move.node)
        if copy.left > (TAIL_BYTES if rate is None else min(TAIL_BYTES, rate)):
            await self._copy_piece(copy, rate)
            return False
        if isinstance(copy, LogCopy) and not move.is_settled:
            move.is_settled = True
            await off_loop(self.turn, copy.settle_job().run)
            return False
        if not move.is_assigned:
            move.is_leaving = True
            await self._assign(move, move.target)
            move.is_leaving = move.is_assigned
            return False
        if isinstance(copy, LogCopy):
            self._switch(move, copy)
        return True

    def _rate(self, node: int) -> int | None:
        """Returns how fast replicas of a node are copied, in bytes per second; None if there is no limit."""
        return self.settings.of_node(self.homes.nodes.by_id.get(node, self.homes.nodes.first).config).rate(THROTTLE)

    async def _copy_piece(self, copy: LogCopy | Counted, rate: int | None) -> None:
        """Copies what the throttle allows, a `rate` in bytes per second. Raises OSError."""
        now = self.turn.schedule.monotonic_ms()
        if rate == 0 or (rate is not None and self._free_at_ms > now):
            await self.turn.pause(min(self._free_at_ms - now, LOOK_AGAIN_MS) if rate else LOOK_AGAIN_MS)
            return
        limit = PIECE_BYTES if rate is None else min(PIECE_BYTES, rate)
        if isinstance(copy, Counted):
            copied = min(limit, copy.left)
            copy.size += copied
            await self.turn.next()
        else:
            piece = copy.next_piece(limit)
            copied = 0 if piece is None else await self._run_piece(copy, piece)
        if rate:
            self._free_at_ms = max(self._free_at_ms, now) + copied * 1000 // rate

    async def _run_piece(self, copy: LogCopy, piece: Piece) -> int:
        try:
            copied: int = await off_loop(self.turn, piece.run)
        except FileNotFoundError:
            if piece.segment in copy.log.segments and piece.segment.path(LOG) == piece.source:
                raise
            return 0  # retention has taken it
        copy.copied(piece, copied)
        return copied

    async def _assign(self, move: Move, directory: LogDirectory) -> None:
        """Has the controller write the directory of a replica."""
        assign, partition = self.homes.assign, move.partition
        if assign is None:
            return
        try:
            await assign({(partition.topic_id, partition.index): {move.node: directory.node_ids[move.node]}})
        except ApiError as error:
            logger.warning("%s: the controller does not take its new directory: %s", partition.name, error)
            await self.turn.pause(RETRY_MS)
            return
        if directory is move.target:
            move.is_assigned = True
            if move.is_cancelled:
                await self._assign(move, move.source)

    # the end

    def _switch(self, move: Move, copy: LogCopy) -> None:
        """Lets the log go on in the copy. Raises OSError before anything has changed."""
        partition, log, files = move.partition, copy.log, self.log_directories.files
        source, key = self.partitions.directory_of[partition], (partition.topic, partition.index)
        copy.finish()
        target = move.target
        target.recovery_points[key] = log.recovery_point
        target.log_starts[key] = log.start_offset
        target.high_watermarks[key] = partition.high_watermark
        if log.settings.is_compacted:
            target.cleaner_offsets[key] = log.first_dirty_offset
        directories.store(files, target, directories.checkpoint_job(target))
        path, left = f"{target.path}/{partition_directory(*key)}", log.directory
        files.rename(copy.directory, path)
        try:
            files.sync_directory(target.path)
        except OSError:
            self._take_back(path, copy.directory)
            raise
        copy.switch(path)
        self.partitions.move(partition, target)
        self._forget(move)
        logger.info("%s: its log is in %s now", partition.name, target.path)
        self._retire(source, left, *key)
        self.checkpoints.begin_round()

    def _take_back(self, path: str, future: str) -> None:
        """Gives a copy its former name. Raises OSError if it cannot: the next start could take the copy, which is not
        written any more, for the log, so that its directory must not be used.
        """
        try:
            self.log_directories.files.rename(path, future)
        except OSError as error:
            raise OSError(errno.EIO, f"a copy keeps the name of its log: {error}", path) from error

    def _retire(self, directory: LogDirectory, path: str, topic: str, index: int) -> None:
        """Renames a directory that is not needed any more; it is removed later."""
        name = retired_directory(topic, index, self.log_directories.new_id().hex(), DIRECTORY_DELETED)
        retired = f"{directory.path}/{name}"
        try:
            self.log_directories.files.rename(path, retired)
        except OSError as error:
            self.log_directories.io_failed(directory, error)
        else:
            self.removal.add_left(retired, directory)

    def _cancel(self, move: Move) -> None:
        """Ends a move; the replica stays where it is."""
        move.is_cancelled = True
        self._forget(move)
        self._discard(move)
        if move.is_assigned:
            self.turn.background(self._assign(move, move.source))

    def _discard(self, move: Move) -> None:
        """Removes the copy of a move."""
        copy, move.copy, move.is_settled = move.copy, None, False
        if isinstance(copy, LogCopy) and not move.target.failed:
            self._retire(move.target, copy.directory, move.partition.topic, move.partition.index)

    def _forget(self, move: Move) -> None:
        self._all.pop((move.partition, move.node), None)
        if not any(one.partition is move.partition and isinstance(one.copy, LogCopy) for one in self._all.values()):
            self.cleaner.paused.discard(move.partition)

    def _failed(self, move: Move, error: OSError) -> bool:
        """Handles an I/O error of a move; returns whether the move is over. Kafka takes a directory offline whose copy
        it cannot rename. Here a move goes on if the error may pass, and else ends, as other operations do
        (`storage.failures`): the replica stays where it is.
        """
        path = str(error.filename or "")
        home = next((one for one in self.log_directories.all if path.startswith(f"{one.path}/")), move.target)
        if self.log_directories.io_failed(home, error):
            return True
        if is_passing(error):
            return False
        logger.error("%s: its move to %s ends: %s", move.partition.name, move.target.path, error)
        self._cancel(move)
        return True
