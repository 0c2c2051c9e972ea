"""Batches that claim what they do not hold, and batches that hold far more than their bytes: produced, looked for by
time, leased, compacted.
"""

from __future__ import annotations

import struct
import time
from typing import Any

from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD
from ottla.protocol.errors import Errors
from ottla.protocol.records import Record, Template

from ..support.ask import create, fetch_message, produce_message
from ..support.share_session import ShareSession
from ..support.share_session import configure as configure_group
from ..support.wire import Wire
from .harness import Site, attack

CODECS = (GZIP, SNAPPY, LZ4, ZSTD)
MANY = 2**31 - 1


def _claiming(data: bytes, count: int, max_timestamp: int | None = None) -> bytes:
    out = bytearray(data)
    struct.pack_into(">i", out, 23, count - 1)
    struct.pack_into(">i", out, 57, count)
    if max_timestamp is not None:
        struct.pack_into(">q", out, 35, max_timestamp)
    struct.pack_into(">I", out, 17, records.computed_crc(out, 0, len(out)))
    return bytes(out)


def _bomb(codec: int, size: int, many: bool = False) -> bytes:
    """A batch of one record of zeros, or of as many empty records as `size` bytes hold; its time is the day of its
    making.
    """
    now = int(time.time() * 1000)
    if not many:
        return bytes(records.encode([Record(b"k", bytes(size), now)], Template(codec=codec)))
    body = b"\x0c\0\0\0\0\1\0" * (size // records.RECORD_BYTES_MIN)
    count = size // records.RECORD_BYTES_MIN
    return bytes(records.batch_of(bytearray(body), Template(codec=codec), count, count - 1, now, now))


def _produce(wire: Wire, name: str, data: bytes) -> Any:
    return wire.ask("Produce", 9, produce_message(name, data, timeout_ms=60_000)).responses[0].partition_responses[0]


def _first_at(wire: Wire, name: str, timestamp: int) -> Any:
    r = m.ListOffsetsRequest
    partition = r.ListOffsetsPartition(partition_index=0, timestamp=timestamp, current_leader_epoch=-1)
    request = r(replica_id=-1, topics=[r.ListOffsetsTopic(name=name, partitions=[partition])])
    return wire.ask("ListOffsets", 7, request).topics[0].partitions[0]


@attack(quick=True, memory_mib_max=20)
def batches_that_claim_two_billion_records(site: Site) -> None:
    """69 bytes of each codec; a share group must not get to see them."""
    with site.wire() as wire:
        create(wire, "claims")
        small = [Record(None, None, 1)]
        for codec in (NONE, *CODECS):
            answer = _produce(wire, "claims", _claiming(bytes(records.encode(small, Template(codec=codec))), MANY))
            assert answer.error_code == Errors.INVALID_RECORD, answer


@attack(quick=True, memory_mib_max=60)
def bombs_of_each_codec(site: Site) -> None:
    """A value of 200 MiB, for a topic that looks at its records."""
    with site.wire(120) as wire:
        create(wire, "bombs", cleanup_policy="compact", max_message_bytes=str(64 << 20))
        for codec in (GZIP, ZSTD):
            answer = _produce(wire, "bombs", _bomb(codec, 200 << 20))
            assert answer.error_code == Errors.INVALID_RECORD, answer
        for codec in (SNAPPY, LZ4):  # these cannot hold much more than they are, so it is taken
            assert _produce(wire, "bombs", _bomb(codec, 30 << 20)).error_code == 0


@attack(memory_mib_max=60)
def bombs_of_small_records(site: Site) -> None:
    """As many records of seven bytes as may be in a batch at all."""
    with site.wire(300) as wire:
        create(wire, "crowds", cleanup_policy="compact")
        for codec in (GZIP, ZSTD):
            began = time.monotonic()
            answer = _produce(wire, "crowds", _bomb(codec, 8 << 20, many=True))
            site.note(f"{time.monotonic() - began:.1f} s for {8 << 20} bytes of records, error {answer.error_code}")


@attack(memory_mib_max=60)
def times_are_looked_for_in_stored_bombs(site: Site) -> None:
    """Stored with their records closed, a kibibyte for a mebibyte; ListOffsets opens them."""
    with site.wire(300) as wire:
        create(wire, "stored")
        for codec in (GZIP, ZSTD):
            assert _produce(wire, "stored", _bomb(codec, 200 << 20)).error_code == 0
        for timestamp in (1, int(time.time() * 1000) - 3600_000, -3):
            assert _first_at(wire, "stored", timestamp).error_code == 0


@attack(memory_mib_max=60)
def small_batches_that_no_index_entry_leads_to(site: Site) -> None:
    """A topic asks for no entries of the offset index; the times of most batches are too low for the time index."""
    count, now = 60_000, int(time.time() * 1000)
    with site.wire(300) as wire:
        create(wire, "sparse", index_interval_bytes=str(MANY))
        _produce(wire, "sparse", bytes(records.encode([Record(None, None, now + 1000)])))
        data = bytes(records.encode([Record(None, None, now)]))
        low = produce_message("sparse", data, acks=0)
        for n in range(count):
            if n % 50:
                wire.say("Produce", 9, low)
            else:  # not more of them in one read of the broker
                _produce(wire, "sparse", data)
        last = _produce(wire, "sparse", bytes(records.encode([Record(None, None, now + 3000)])))
        assert last.base_offset == count + 1
        for _ in range(5):
            assert _first_at(wire, "sparse", now + 2000).offset == count + 1
            reply = wire.ask("Fetch", 11, fetch_message("sparse", count + 1))
            assert reply.responses[0].partitions[0].error_code == 0


@attack(quick=True, memory_mib_max=40)
def a_largest_timestamp_of_the_far_future(site: Site) -> None:
    """It would keep its segment for ever, and begin a new one with every batch."""
    with site.wire() as wire:
        create(wire, "future", segment_ms="1000")
        now = int(time.time() * 1000)
        for n in range(300):
            answer = _produce(
                wire, "future", _claiming(bytes(records.encode([Record(None, b"v", now)])), 1, now + n * 10**9)
            )
            assert answer.error_code == 0, answer
        last = _first_at(wire, "future", -3)
        assert last.timestamp <= int(time.time() * 1000) + 61_000, last


@attack(memory_mib_max=150, settings={"errors.deadletterqueue.auto.create.topics.enable": "true"})
def a_flood_of_dead_letters(site: Site) -> None:
    """Every record of a batch of 100,000 is rejected, and copied."""
    name = "letters"
    with site.wire(300) as wire:
        topic_id = create(wire, name, max_message_bytes=str(64 << 20))
        wire.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=[name]))
        configure_group(wire, name, "errors.deadletterqueue.topic.name", "dlq.flood")
        configure_group(wire, name, "errors.deadletterqueue.copy.record.enable", "true")
        session = ShareSession(wire, name, topic_id, 1)
        now = int(time.time() * 1000)
        assert _produce(wire, name, bytes(records.encode([Record(b"k", b"v" * 20, now)] * 100_000))).error_code == 0
        rejected = 0
        while taken := session.fetch():
            for partition, first, last, _ in taken:
                session.acknowledge(partition, first, last, [3])
                rejected += last - first + 1
        until = time.monotonic() + 240
        while _first_at(wire, "dlq.flood", -1).offset < rejected:
            assert time.monotonic() < until, "the letters do not come"
            time.sleep(0.2)
        site.note(f"{rejected} letters")


@attack(memory_mib_max=150, settings={"log.cleaner.backoff.ms": 100})
def a_bomb_is_compacted(site: Site) -> None:
    """A batch as large as it may be, in a segment that is compacted."""
    with site.wire(300) as wire:
        create(wire, "squeezed", cleanup_policy="compact", segment_ms="100", min_cleanable_dirty_ratio="0.01")
        assert _produce(wire, "squeezed", _bomb(ZSTD, 30 << 20)).error_code == 0
        time.sleep(0.2)
        assert (
            _produce(
                wire, "squeezed", bytes(records.encode([Record(b"other", b"v", int(time.time() * 1000))]))
            ).error_code
            == 0
        )
        time.sleep(2)


@attack(memory_mib_max=60)
def stored_bombs_and_false_counts_are_leased(site: Site) -> None:
    """Batches whose records nothing has opened: 200 MiB in a few kibibytes, and a compressed one that holds fewer
    records than it claims.
    """
    name = "leased"
    with site.wire(120) as wire:
        topic_id = create(wire, name)
        wire.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=[name]))
        session = ShareSession(wire, name, topic_id, 1)
        small = [Record(None, bytes(2000), int(time.time() * 1000))]
        claiming = _claiming(bytes(records.encode(small, Template(codec=SNAPPY))), 20)
        for data in (_bomb(GZIP, 200 << 20), _bomb(ZSTD, 200 << 20), claiming):
            assert _produce(wire, name, data).error_code == 0
        leased = 0
        while taken := session.fetch():
            for partition, first, last, _ in taken:
                session.acknowledge(partition, first, last, [1])
                leased += last - first + 1
        site.note(f"{leased} offsets leased")
