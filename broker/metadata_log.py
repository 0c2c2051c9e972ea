"""`__cluster_metadata-0` as a KRaft log of one voter: formatting, snapshots, leader epochs, `quorum-state`.

Formatting writes the snapshot `00000000000000000000-0000000000.checkpoint` as Kafka's storage tool does: a header, the KRaft
version, the voters, the feature levels, a footer. Every start begins a new leader epoch with a leader change message. Control
batches have the record types 2 (leader change), 3 and 4 (snapshot header and footer), 5 (KRaft version), 6 (voters).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..coordinator.metadata.format import MetadataFormat
from ..protocol import codec, messages, records
from ..protocol.features import KRAFT_VERSION, defaults, supported
from ..protocol.records import BatchAt, Record, Template
from ..storage.checkpoints import uuid_to_text
from ..storage.files import Files
from ..storage.layout import parse_snapshot_name, snapshot_name
from ..storage.log import Log

LEADER_CHANGE, SNAPSHOT_HEADER, SNAPSHOT_FOOTER, KRAFT_VERSION_RECORD, VOTERS = 2, 3, 4, 5, 6
QUORUM_STATE = "quorum-state"
DIRECTORY = "__cluster_metadata-0"
TOPIC_ID = bytes(15) + b"\x01"  # AAAAAAAAAAAAAAAAAAAAAQ, the same in every cluster
KRAFT_LEVEL = 1
NO_DIRECTORY_TEXT = uuid_to_text(bytes(16))


class Voter(NamedTuple):
    id: int
    directory_id: bytes
    listener: str
    host: str
    port: int


def control_record(kind: int, name: str, message: Any) -> Record:
    return Record(struct.pack(">hh", 0, kind), bytes(codec.build(name, message.version, message)))


def kraft_version_record() -> Record:
    return control_record(KRAFT_VERSION_RECORD, "KRaftVersionRecord", messages.KRaftVersionRecord(version=0, k_raft_version=KRAFT_LEVEL))


def voters_record(voter: Voter) -> Record:
    r = messages.VotersRecord
    low, high = supported()[KRAFT_VERSION]
    one = r.Voter(
        voter_id=voter.id,
        voter_directory_id=voter.directory_id,
        endpoints=[r.Endpoint(name=voter.listener, host=voter.host, port=voter.port)],
        k_raft_version_feature=r.KRaftVersionFeature(min_supported_version=low, max_supported_version=high),
    )
    return control_record(VOTERS, "VotersRecord", r(version=0, voters=[one]))


def leader_change_record(voter: Voter) -> Record:
    r = messages.LeaderChangeMessage
    one = r.Voter(voter_id=voter.id)
    return control_record(LEADER_CHANGE, "LeaderChangeMessage", r(version=0, leader_id=voter.id, voters=[one], granting_voters=[one]))


def build_snapshot(voter: Voter, contents: list[Any], epoch: int, last_timestamp: int, now_ms: int) -> bytes:
    """A snapshot file: header, KRaft version and voters; metadata records; footer."""
    encode = MetadataFormat().encode
    header = messages.SnapshotHeaderRecord(version=0, last_contained_log_timestamp=last_timestamp)
    first = [control_record(SNAPSHOT_HEADER, "SnapshotHeaderRecord", header), kraft_version_record(), voters_record(voter)]
    footer = [control_record(SNAPSHOT_FOOTER, "SnapshotFooterRecord", messages.SnapshotFooterRecord(version=0))]
    out, offset = bytearray(), 0
    groups: list[tuple[list[Record], bool]] = [(first, True)]
    encoded = [encode(record) for record in contents]
    groups += [(encoded[n : n + 1000], False) for n in range(0, len(encoded), 1000)]
    for group, control in [*groups, (footer, True)]:
        for record in group:
            record.timestamp = now_ms
        out += records.encode(group, Template(base_offset=offset, leader_epoch=epoch, control=control))
        offset += len(group)
    return bytes(out)


def read_snapshot(data: bytes) -> tuple[list[Any], bool]:
    """The metadata records of a snapshot, and whether it ends with its footer and every CRC holds."""
    found: list[Any] = []
    complete = False
    decode = MetadataFormat().decode
    for at in records.batches(data):
        if records.computed_crc(data, at.position, at.header.size) != at.header.crc:
            return [], False
        for record in records.decode(data, at):
            if at.header.is_control:
                complete = record.key is not None and struct.unpack(">hh", record.key)[1] == SNAPSHOT_FOOTER
            elif (decoded := decode(record)) is not None:
                found.append(decoded[1])
    return found, complete


def format_directory(files: Files, directory: str, voter: Voter, now_ms: int) -> None:
    """Makes the metadata log's directory with its first snapshot."""
    path = f"{directory}/{DIRECTORY}"
    files.make_directory(path)
    levels = [messages.FeatureLevelRecord(name=name, feature_level=level) for name, level in defaults().items()]
    files.replace(f"{path}/{snapshot_name(0, 0)}", build_snapshot(voter, levels, 0, now_ms, now_ms))


def snapshots(files: Files, path: str) -> list[tuple[int, int]]:
    """End offset and epoch of the snapshots in the metadata log's directory, newest first."""
    found = (parse_snapshot_name(name) for name in files.names(path))
    return sorted((s for s in found if s), reverse=True)


def read_quorum_epoch(files: Files, path: str) -> int:
    try:
        state = json.loads(files.read(f"{path}/{QUORUM_STATE}"))
        return int(state["leaderEpoch"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return 0


def write_quorum_state(files: Files, path: str, leader_id: int, epoch: int) -> None:
    state = {
        "leaderId": leader_id,
        "leaderEpoch": epoch,
        "votedId": -1,
        "votedDirectoryId": NO_DIRECTORY_TEXT,
        "data_version": 1,
    }
    files.replace(f"{path}/{QUORUM_STATE}", json.dumps(state, separators=(",", ":")).encode())


def append_control(log: Log, control: list[Record], epoch: int, now_ms: int) -> None:
    for record in control:
        record.timestamp = now_ms
    batch = records.encode(control, Template(control=True))
    log.append(batch, list(records.batches(batch)), epoch, now_ms)


def metadata_records(log: Log, from_offset: int) -> Iterator[tuple[int, Record]]:
    """The data records of the log from an offset on, with their offsets; control batches are passed over."""
    for segment, batch in log.batches_from(from_offset):
        if batch.header is None or batch.header.is_control:
            continue
        for record in records.decode(segment.read_batch(batch), BatchAt(0, batch.header)):
            if record.offset >= from_offset:
                yield record.offset, record
