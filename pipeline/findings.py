"""What the audit can find: the kinds of findings and their words, for its checks in Python and those in SQL."""

from __future__ import annotations

from typing import Final, NamedTuple


class Finding(NamedTuple):
    """`words`: a format that Python's `%` and Spark's `format_string` fill in alike."""

    kind: str
    words: str = "%s"

    def of(self, *values: object) -> tuple[str, str]:
        """Returns the kind, and the words with these values."""
        return self.kind, self.words % values


BYTES: Final = Finding("bytes")
CRC: Final = Finding("crc")
RECORDS: Final = Finding("records")
ORDER: Final = Finding("order", "begins at or before offset %d, the end of the previous batch")
CONTINUITY: Final = Finding("continuity", "offsets %d to %d are missing")
SEGMENT: Final = Finding("segment", "the name of the segment says offset %d, but its first offset is %d")
LEADER_EPOCH: Final = Finding("leader-epoch", "the leader epoch is %d, but the checkpoint has %d")
SEQUENCE_DUPLICATE: Final = Finding(
    "sequence-duplicate", "producer %d, epoch %d: sequence %d is repeated; the last one was %d"
)
SEQUENCE_GAP: Final = Finding("sequence-gap", "producer %d, epoch %d: sequence %d, where %d was expected")
PRODUCER_EPOCH: Final = Finding("producer-epoch", "producer %d: epoch %d after %d")
END: Final = Finding("end", "the log ends at offset %d, but its checkpointed high watermark is %d")
INDEX: Final = Finding("index")
INDEX_FILES: Final = Finding("index", "%s lacks its offset index or its time index")
ABORT_NOT_NOTED: Final = Finding(
    "transaction-index", "the aborted transaction of producer %d is missing from the index"
)
ABORT_NOT_MARKED: Final = Finding(
    "transaction-index", "the index has an aborted transaction of producer %d that is missing from the log"
)
ABORT_BEGINS: Final = Finding(
    "transaction-index", "the transaction of producer %d begins at offset %d, but the index says %d"
)
TRANSACTION_HANGS: Final = Finding("transaction-hangs", "the transaction of producer %d is hanging: %s")
WITHOUT_SEGMENT: Final = Finding("orphan", "%s belongs to a segment that does not exist")
WITHOUT_LOG: Final = Finding("orphan", "%s is not part of any log")
INTERRUPTED: Final = Finding("interrupted", "%s: cleaning was interrupted")
