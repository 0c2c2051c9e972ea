"""Whether a broker has refused what the other has done only because it is not as far yet: then it is asked again. Pure.

Some requests change nothing, and can be asked again as they are. Others are asked again only if nothing of them was
done; of a Produce, the partitions that were refused are, of a Fetch, those that have an error. What changes something
goes to B after A has answered, and not at all where A has refused it only because it was not ready.
"""

from __future__ import annotations

from typing import Final

from ..protocol import schema
from ..protocol.errors import CODES
from ..protocol.schema import FieldSchema
from ..protocol.structs import Struct

AGAIN: Final = frozenset(
    CODES[name]
    for name in (
        *("COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "LEADER_NOT_AVAILABLE"),
        *("NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID", "CONCURRENT_TRANSACTIONS"),
        *("UNKNOWN_LEADER_EPOCH", "OFFSET_NOT_AVAILABLE", "UNSTABLE_OFFSET_COMMIT"),
        "STALE_MEMBER_EPOCH",  # its heartbeat is on the way
    )
)
"""Errors of a broker that is not as far as the other yet."""
READING: Final = frozenset(
    name
    for name in (one["request"].removesuffix("Request") for one in schema.index()["apis"].values())
    if name.startswith(("Describe", "List", "ConsumerGroupDescribe", "ShareGroupDescribe", "StreamsGroupDescribe"))
) | {"Metadata", "FindCoordinator", "OffsetFetch", "OffsetForLeaderEpoch"}
"""APIs that change nothing."""
SENT_AGAIN: Final = frozenset(
    (
        *("Produce", "InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"),
        *("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit"),
        *("ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat", "ShareAcknowledge"),
    )
)
"""APIs that change something, and that clients send again by themselves when they are refused with one of `AGAIN`."""


def error_codes(message: Struct, fields: tuple[FieldSchema, ...], version: int) -> list[int]:
    """The error codes that a version of a reply has, at any depth; those of elements count, not a NONE above them."""
    own, inner = [], []
    for field in fields:
        value = getattr(message, field.name)
        if version not in field.versions:
            continue
        if field.name.endswith("error_code"):
            own.append(value)
        elif field.struct is not None:
            for one in value if isinstance(value, list) else (value,):
                inner += error_codes(one, field.struct.fields, version) if isinstance(one, Struct) else []
    return inner + [code for code in own if code or not inner]


def is_refused(api: str, version: int, a: Struct) -> bool:
    """Whether A has only refused, and the client will send the request again: B must not do it twice."""
    codes = set(_codes(api, version, a))
    return api in SENT_AGAIN and bool(codes) and codes <= AGAIN


def is_early(api: str, version: int, a: Struct, b: Struct) -> bool:
    """Whether B has refused what A has done, only because B is not ready yet, so that asking again changes nothing."""
    mine, theirs = (set(_codes(api, version, reply)) for reply in (a, b))
    more = theirs - mine
    return bool(more) and more <= AGAIN and (api in READING or 0 not in theirs)


def _codes(api: str, version: int, reply: Struct) -> list[int]:
    return error_codes(reply, schema.load(f"{api}Response").root.fields, version)
