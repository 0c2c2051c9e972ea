"""`__cluster_metadata-0` as a KRaft log with one voter: formatting, snapshots, leader epochs, `quorum-state`.

Formatting writes the snapshot `00000000000000000000-0000000000.checkpoint` like Kafka's storage tool: a header, the
KRaft version, the voters, the feature levels, a footer. Every start begins a new leader epoch with a leader change
message. Control batches have the record types 2 (leader change), 3 and 4 (snapshot header and footer), 5 (KRaft
version), 6 (voters).
"""

from __future__ import annotations

import json
import logging
import struct
from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from ...coordinator.metadata.format import MetadataFormat
from ...protocol import codec, messages, records
from ...protocol.features import KRAFT_VERSION, defaults, supported
from ...protocol.opening import contents
from ...protocol.records import BatchAt, Record, Template
from ...protocol.schema import NO_UUID
from ...protocol.structs import Struct
from ...storage.batch_info import BatchInfo
from ...storage.checkpoints import uuid_to_text
from ...storage.files import Files
from ...storage.layout import QUORUM_STATE, parse_snapshot_name, snapshot_name
from ...storage.log import Log
from ...storage.segment import Segment
from ..steps import all_at_once

logger = logging.getLogger("ottla.org.apache.kafka.raft.FileQuorumStateStore")
LEADER_CHANGE, SNAPSHOT_HEADER, SNAPSHOT_FOOTER, KRAFT_VERSION_RECORD, VOTERS = 2, 3, 4, 5, 6
DIRECTORY = "__cluster_metadata-0"
TOPIC_ID = bytes(15) + b"\x01"  # AAAAAAAAAAAAAAAAAAAAAQ, the same in every cluster
KRAFT_LEVEL = 1
EPOCH_MAX = 2**31 - 1
SNAPSHOT_STEP = 128  # records in a batch of a snapshot
NO_DIRECTORY_TEXT = uuid_to_text(bytes(16))


class ReplicaKey(NamedTuple):
    """A replica of the metadata log: a controller, and the log directory that has its log."""

    id: int
    directory_id: bytes

    def __str__(self) -> str:
        return f"ReplicaKey(id={self.id}, directoryId={uuid_to_text(self.directory_id)})"

    @property
    def is_valid(self) -> bool:
        return self.id >= 0 and self.directory_id != NO_UUID

    def java_hash(self) -> int:
        """`hashCode` of Kafka's class, in 32 bits."""
        both = int.from_bytes(self.directory_id[:8], "big") ^ int.from_bytes(self.directory_id[8:], "big")
        return (31 * self.id + (both ^ both >> 32)) & 0xFFFFFFFF


class Voter(NamedTuple):
    id: int
    directory_id: bytes
    listener: str
    host: str
    port: int


def control_record(
    kind: int,
    name: str,
    message: messages.KRaftVersionRecord
    | messages.LeaderChangeMessage
    | messages.SnapshotFooterRecord
    | messages.SnapshotHeaderRecord
    | messages.VotersRecord,
) -> Record:
    return Record(struct.pack(">hh", 0, kind), bytes(codec.build(name, message.version, message)))


def kraft_version_record() -> Record:
    return control_record(
        KRAFT_VERSION_RECORD, "KRaftVersionRecord", messages.KRaftVersionRecord(version=0, k_raft_version=KRAFT_LEVEL)
    )


def voters_record(*voters: Voter) -> Record:
    r = messages.VotersRecord
    low, high = supported()[KRAFT_VERSION]
    listed = [
        r.Voter(
            voter_id=voter.id,
            voter_directory_id=voter.directory_id,
            endpoints=[r.Endpoint(name=voter.listener, host=voter.host, port=voter.port)],
            k_raft_version_feature=r.KRaftVersionFeature(min_supported_version=low, max_supported_version=high),
        )
        for voter in voters
    ]
    return control_record(VOTERS, "VotersRecord", r(version=0, voters=listed))


def leader_change_record(voter: Voter) -> Record:
    r = messages.LeaderChangeMessage
    one = r.Voter(voter_id=voter.id)
    return control_record(
        LEADER_CHANGE, "LeaderChangeMessage", r(version=0, leader_id=voter.id, voters=[one], granting_voters=[one])
    )


def build_snapshot(
    voters: Sequence[Voter], contents: Iterable[Struct], epoch: int, last_timestamp: int, now_ms: int
) -> Generator[None, None, bytes]:
    """Returns the bytes of a snapshot, in steps: header, KRaft version and voters; metadata records; footer."""
    encode = MetadataFormat().encode
    header = messages.SnapshotHeaderRecord(version=0, last_contained_log_timestamp=last_timestamp)
    first = [
        control_record(SNAPSHOT_HEADER, "SnapshotHeaderRecord", header),
        kraft_version_record(),
        voters_record(*voters),
    ]
    footer = [control_record(SNAPSHOT_FOOTER, "SnapshotFooterRecord", messages.SnapshotFooterRecord(version=0))]
    out, offset = bytearray(), 0

    def put(group: list[Record], control: bool = False) -> int:
        for record in group:
            record.timestamp = now_ms
        out.extend(records.encode(group, Template(base_offset=offset, leader_epoch=epoch, control=control)))
        return offset + len(group)

    offset = put(first, control=True)
    left = iter(contents)
    while group := [encode(record) for record in islice(left, SNAPSHOT_STEP)]:
        offset = put(group)
        yield
    put(footer, control=True)
    return bytes(out)


def read_snapshot(data: bytes) -> tuple[list[Struct], str | None]:
    """Returns the metadata records in the complete batches of a snapshot, and its error: None if it ends with its
    footer and every CRC is right.
    """
    found: list[Struct] = []
    wrong: str | None = None
    is_complete, end = False, 0
    decode = MetadataFormat().decode
    for at in records.batches(data):
        end = at.position + at.header.size
        if records.computed_crc(data, at.position, at.header.size) != at.header.crc:
            wrong = wrong or f"position {at.position}: the CRC of the batch is wrong"
            continue
        for record in records.decode(data, at):
            if at.header.is_control:
                is_complete = record.key is not None and struct.unpack(">hh", record.key)[1] == SNAPSHOT_FOOTER
            elif (decoded := decode(record)) is not None:
                found.append(decoded[1])
    if wrong is None and (not is_complete or end < len(data)):
        wrong = f"position {end}: {'bytes after the footer' if is_complete else 'the snapshot is incomplete'}"
    return found, wrong


def format_directory(files: Files, directory: str, voter: Voter, now_ms: int) -> None:
    """Creates the directory of the metadata log with its first snapshot."""
    path = f"{directory}/{DIRECTORY}"
    files.make_directory(path)
    levels = [messages.FeatureLevelRecord(name=name, feature_level=level) for name, level in defaults().items()]
    data = all_at_once(build_snapshot([voter], levels, 0, now_ms, now_ms))
    files.replace(f"{path}/{snapshot_name(0, 0)}", data)


def snapshots(names: list[str]) -> list[tuple[int, int]]:
    """Returns end offset and epoch of the snapshots in a list of file names, newest first."""
    found = (parse_snapshot_name(name) for name in names)
    return sorted((s for s in found if s), reverse=True)


def read_quorum_epoch(files: Files, path: str) -> int:
    """Returns the leader epoch in `quorum-state`; 0 if the file is missing, or unreadable, which is logged: the log
    contains the epoch too.
    """
    try:
        data = files.read(f"{path}/{QUORUM_STATE}")
    except FileNotFoundError:
        return 0
    try:
        epoch = int(json.loads(data)["leaderEpoch"])
        if not 0 <= epoch < EPOCH_MAX:
            raise ValueError(f"leader epoch {epoch}")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        logger.warning("%s/%s cannot be read (%s); the leader epoch is taken from the log", path, QUORUM_STATE, error)
        return 0
    return epoch


def quorum_state(leader_id: int, epoch: int) -> bytes:
    """Returns the content of `quorum-state`."""
    state = {
        "leaderId": leader_id,
        "leaderEpoch": epoch,
        "votedId": -1,
        "votedDirectoryId": NO_DIRECTORY_TEXT,
        "data_version": 1,
    }
    return json.dumps(state, separators=(",", ":")).encode()


def append_control(log: Log, control: list[Record], epoch: int, now_ms: int) -> None:
    for record in control:
        record.timestamp = now_ms
    batch = records.encode(control, Template(control=True))
    log.append(batch, list(records.batches(batch)), epoch, now_ms)


def metadata_batches(log: Log, from_offset: int) -> Iterator[tuple[int, Iterator[Record]]]:
    """Yields the offset after each batch of the log from an offset on, and its data records;
    none of a control batch.
    """
    for segment, batch in log.batches_from(from_offset):
        if batch.header is not None:
            yield batch.header.next_offset, _data_records(segment, batch, from_offset)


def _data_records(segment: Segment, batch: BatchInfo, from_offset: int) -> Iterator[Record]:
    if batch.header is not None and not batch.header.is_control:
        for some in contents(segment.read_batch(batch), BatchAt(0, batch.header)):
            yield from (record for record in some if record.offset >= from_offset)


def metadata_records(log: Log, from_offset: int) -> Iterator[Record]:
    """Yields the data records of the log from an offset on; skips control batches."""
    for _, batch in metadata_batches(log, from_offset):
        yield from batch
