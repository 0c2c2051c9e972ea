"""Old requests with message sets, for the fuzzer: real ones, nested ones, wrong checksums, sizes and offsets that lie;
and what a broker that emulates an earlier release has to do with them.

A request whose frame is whole is answered, whatever its messages are. What was accepted reads the same in every version
of Fetch, also after a restart.
"""

from __future__ import annotations

import contextlib
import random
import zlib
from collections.abc import Mapping
from typing import Any

from ottla.broker.emulation.releases import releases
from ottla.broker.net.api import Api
from ottla.protocol import compression, legacy, records
from ottla.protocol import messages as m
from ottla.protocol.frames import framed
from ottla.protocol.legacy import Message
from ottla.protocol.message_set_send import FETCH, MULTI_FETCH
from ottla.protocol.records import Record, Template

from .ask import fetch_message, produce_message
from .poll import until
from .wire import Closed, Wire

BATCHES_SINCE = {0: 3, 1: 4}  # by API key: the first version without message sets
WITH_TOPIC_IDS = {"Produce": 13, "Fetch": 13}  # the versions that name no topics begin here
OLDEST_FETCH = "ottla.emulate.oldest.fetch"
RELEASES = ("0.8.2", "0.9", "0.10.0", "0.10.2", "0.11", "1.1", "2.8", "3.9")
SETTINGS: dict[str, dict[str, object]] = {
    name: {
        "ottla.emulate": name,
        "ottla.record.validation": "full",  # else what no codec can read is stored
        **({OLDEST_FETCH: "true"} if name == "0.8.2" else {}),
    }
    for name in RELEASES
}
DEPTH_MAX = 3
BOMB_BYTES = 8 << 20  # of zeros: more than a compressed message of its size may hold
ANSWER_S = 30.0
Seen = tuple[int, bytes | None, bytes | None]  # a message: offset, key, value


def messages(chance: random.Random, depth: int = 0) -> bytes:
    """A message set, perhaps with what no broker accepts."""
    if depth == 0 and chance.random() < 0.05:
        return _batch(chance)
    made = []
    first, step = chance.choice(((0, 1), (0, 1), (0, 1), (5, -1), (2**62, 1), (-(2**63), 2**62), (7, 0), (3, 1000)))
    magic = chance.choice((0, 1))
    for index in range(chance.choice((0, 1, 1, 2, 20))):
        magic = magic if chance.random() < 0.9 else 1 - magic
        codec = chance.choice((0, 0, 0, 1, 2, 3, 4, 7)) if chance.random() < 0.9**depth / 2 else 0
        made.append(_entry(chance, depth, max(-(2**63), min(2**63 - 1, first + index * step)), magic, codec))
    data = b"".join(made)
    return data if chance.random() < 0.95 else data[: chance.randrange(len(data) + 1)]


def _entry(chance: random.Random, depth: int, offset: int, magic: int, codec: int) -> bytes:
    """An entry, whose fields lie one time in four."""
    value = chance.choice((None, b"", b"v", chance.randbytes(50)))
    if codec and depth < DEPTH_MAX and chance.random() < 0.95:
        inner = messages(chance, depth + 1) if chance.random() < 0.97 else bytes(BOMB_BYTES)
        value = compression.compress(codec, inner) if codec in range(1, 5) and chance.random() < 0.9 else inner
    time = chance.choice((-1, 0, 1_700_000_000_000, 2**63 - 1, -(2**63)))
    data = legacy.entry_of(Message(offset, chance.choice((None, b"k")), value, magic, time), offset, codec)
    return data if chance.random() < 0.75 else _lying(bytearray(data), chance)


def _lying(data: bytearray, chance: random.Random) -> bytes:
    """The entry with one field changed; its checksum is right half of the times."""
    at, sizes = chance.random(), (-(2**31), -2, -1, 0, 1, 13, 14, 100, 2**31 - 1)
    if at < 0.2:
        data[16] = chance.choice((0, 1, 2, 3, 127, 128, 255))  # its version
    elif at < 0.4:
        data[17] = chance.choice((4, 5, 7, 8, 9, 15, 0x80, 0xFF))  # its attributes
    elif at < 0.6:
        key_at = 26 if data[16] else 18
        data[key_at : key_at + 4] = chance.choice(sizes).to_bytes(4, "big", signed=True)
    elif at < 0.8:
        place = chance.randrange(18, len(data))
        data[place : place + 4] = chance.choice(sizes).to_bytes(4, "big", signed=True)
    elif at < 0.9:
        data[8:12] = chance.choice(sizes).to_bytes(4, "big", signed=True)  # the size of the whole
    else:
        del data[chance.randrange(12, len(data)) :]
    if chance.random() < 0.5 and len(data) > 16:
        data[12:16] = zlib.crc32(data[16:]).to_bytes(4, "big")
    return bytes(data)


def _batch(chance: random.Random) -> bytes:
    """A record batch, whose numbers may lie; its checksum is right mostly."""
    count = chance.choice((1, 2, 30))
    some = [
        Record(chance.choice((None, b"k")), chance.choice((None, b"", chance.randbytes(chance.randrange(200)))), time)
        for time in (chance.choice((0, 1, 1_700_000_000_000)) for _ in range(count))
    ]
    codec = chance.choice((0, 0, 1, 2, 3))  # zstd is not converted down
    data = bytearray(records.encode(some, Template(codec=codec, base_offset=chance.choice((0, 0, 5, 2**62)))))
    if chance.random() < 0.3:
        at = chance.randrange(records.MAGIC_AT, len(data))
        data[at] ^= 1 << chance.randrange(8)
        if chance.random() < 0.7:
            data[17:21] = records.computed_crc(data, 0, len(data)).to_bytes(4, "big")
    return bytes(data)


def request(key: int, topic: str, chance: random.Random) -> Any:
    """A Produce (0) or a Fetch (1) of a topic that exists."""
    if key == 0:
        return produce_message(topic, messages(chance), acks=1, timeout_ms=10)
    bytes_max = chance.choice((-1, 0, 1, 20, 1000, 2**31 - 1))
    wanted = fetch_message(topic, chance.randrange(-2, 50), max_bytes=2**31 - 1)
    wanted.topics[0].partitions[0].partition_max_bytes = bytes_max
    return wanted


def oldest(topic: str, chance: random.Random) -> bytes:
    """A fetch or a multi-fetch of before 0.8, as a frame."""
    fetches = []
    for _ in range(chance.choice((1, 1, 2, 40))):
        name = chance.choice((topic.encode(), topic.encode(), b"none", b"\xff", b""))
        place = chance.choice((0, 0, 1, -1, 2**31 - 1)).to_bytes(4, "big", signed=True)
        offset = chance.choice((0, 0, 1, 3, -1, 2**63 - 1)).to_bytes(8, "big", signed=True)
        size = chance.choice((0, 1, 20, 1 << 20, 2**31 - 1, -1)).to_bytes(4, "big", signed=True)
        fetches.append(len(name).to_bytes(2, "big") + name + place + offset + size)
    if len(fetches) == 1:
        return framed(FETCH.to_bytes(2, "big") + fetches[0])
    count = chance.choice((len(fetches), len(fetches), 0, 0x7FFF, 0xFFFF))
    return framed(MULTI_FETCH.to_bytes(2, "big") + count.to_bytes(2, "big") + b"".join(fetches))


# a whole topic


def highest(served: Mapping[int, Api], name: str, at_most: int) -> int:
    """The highest version of an API that a broker has, up to one."""
    (api,) = (one for one in served.values() if one.name == name)
    return min(api.high, at_most)


def make_topic(wire: Wire, served: Mapping[int, Api], name: str) -> None:
    """Makes a topic as clients of every release can: by asking for it until it has a leader."""
    version, r = highest(served, "Metadata", 9), m.MetadataRequest
    wanted = r(topics=[r.MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)

    def has_leader() -> bool:
        (topic,) = wire.ask("Metadata", version, wanted).topics
        return bool(not topic.error_code and topic.partitions and topic.partitions[0].leader_id >= 0)

    until(has_leader, f"{name} has a leader")


def produce_to(wire: Wire, served: Mapping[int, Api], name: str, value: bytes) -> None:
    """Appends a message, in the newest format that the broker takes."""
    version = highest(served, "Produce", 9)
    if version >= BATCHES_SINCE[0]:
        data = bytes(records.encode([Record(None, value, 1)], Template()))
    else:
        data = legacy.entry_of(Message(0, None, value, 1 if version == 2 else 0), 0, compression.NONE)
    (topic,) = wire.ask("Produce", version, produce_message(name, data)).responses
    assert topic.partition_responses[0].error_code == 0, topic


def read_whole(wire: Wire, name: str, version: int) -> list[Seen]:
    """Every message of a topic, by one version of Fetch, with small buffers and large ones in turn."""
    found: list[Seen] = []
    offset, sizes = 0, (1 << 20, 3000)
    for number in range(100_000):
        bytes_max = sizes[number % 2] if version >= 3 else 1 << 20
        (topic,) = wire.ask("Fetch", version, fetch_message(name, offset, max_bytes=bytes_max)).responses
        (part,) = topic.partitions
        assert part.error_code == 0, f"Fetch {version} of {name} from {offset}: {part}"
        some, end = _messages_of(bytes(part.records or b""), offset)
        found += some
        if end == offset:
            assert end == part.high_watermark, f"Fetch {version} of {name} ends at {end} of {part.high_watermark}"
            return found
        offset = end
    raise AssertionError(f"Fetch {version} of {name} does not end")


def _messages_of(data: bytes, offset: int) -> tuple[list[Seen], int]:
    """Returns the messages since an offset, and the offset after them."""
    found: list[Seen] = []
    if len(data) > records.MAGIC_AT and data[records.MAGIC_AT] == records.MAGIC:
        for at in records.batches(data):
            found += [(one.offset, one.key, one.value) for one in records.decode(data, at)]
            offset_after = at.header.next_offset
    else:
        found = [(one.offset, one.key, one.value) for one in legacy.decode(data)]
        offset_after = found[-1][0] + 1 if found else offset
    return [one for one in found if one[0] >= offset], max(offset, offset_after)


def reads(wire: Wire, served: Mapping[int, Api], name: str) -> list[Seen]:
    """Every message of a topic, which all versions of Fetch must return alike."""
    (api,) = (one for one in served.values() if one.name == "Fetch")
    seen = {v: read_whole(wire, name, v) for v in range(api.low, min(api.high, WITH_TOPIC_IDS["Fetch"] - 1) + 1)}
    (first, expected), *others = seen.items()
    for version, found in others:
        assert found == expected, f"Fetch {version} and {first} of {name} differ: {_difference(found, expected)}"
    return expected


def _difference(found: list[Seen], expected: list[Seen]) -> str:
    for number, (one, other) in enumerate(zip(found, expected, strict=False)):
        if one != other:
            return f"message {number}: {one} and {other}"
    return f"{len(found)} and {len(expected)} messages"


def run_sets(broker: Any, served: Mapping[int, Api], count: int, seed: int) -> list[Seen]:
    """Sends `count` whole requests with messages that lie; each must be answered. Returns what the topic has then."""
    chance, topic = random.Random(seed), f"fuzz-sets-{seed}"
    has_oldest = broker.settings.get(OLDEST_FETCH) == "true"
    produce, fetch = (next(one for one in served.values() if one.name == name) for name in ("Produce", "Fetch"))
    with Wire(broker.bootstrap_servers, timeout=ANSWER_S) as wire:
        make_topic(wire, served, topic)
        for number in range(count):
            try:
                if has_oldest and chance.random() < 0.2:
                    _ask_oldest(broker, topic, chance)
                    continue
                name, api = chance.choice((("Produce", produce), ("Produce", produce), ("Fetch", fetch)))
                version = chance.randint(api.low, min(api.high, WITH_TOPIC_IDS[name] - 1))
                wire.ask(name, version, request(api.key, topic, chance))
            except (Closed, TimeoutError) as error:
                raise AssertionError(f"seed {seed}: request {number} ({name} {version}): {error!r}") from None
        return reads(wire, served, topic)


def _ask_oldest(broker: Any, topic: str, chance: random.Random) -> None:
    """A wrong frame may end the connection."""
    with Wire(broker.bootstrap_servers, timeout=ANSWER_S) as wire, contextlib.suppress(Closed):
        wire.send(oldest(topic, chance))
        wire.read_frame()


def settings_of(release: str) -> dict[str, object]:
    """The settings of a broker that emulates a release. Raises ValueError: there is none of this name."""
    if release not in releases():
        raise ValueError(f"{release} is no release: {', '.join(releases())}")
    return SETTINGS.get(release, {"ottla.emulate": release})
