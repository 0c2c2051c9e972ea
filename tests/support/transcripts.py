"""What Apache Kafka said in the differential stories, written down: so that they run, and can be read, without a JVM.

A transcript is a file of JSON lines for each test, one line a request with its reply (`on` is the number of the
connection, and defaults are left out). There are three modes (`OTTLA_ORACLE`):

    live       asks Kafka; replies that were compared are also held against the transcript, unless the story varies from
               run to run.
    recorded   plays the transcript. The default.
    record     asks Kafka, and writes the transcript (`make transcripts`).
"""

from __future__ import annotations

import json
import os
import re
import zlib
from pathlib import Path
from typing import Any, Protocol

from ottla.protocol import codec, schema
from ottla.protocol.messages import struct_class
from ottla.protocol.schema import FieldSchema, Schema, StructSchema

from .wire import Closed, Wire

FOLDER = Path(__file__).parents[1] / "differential" / "transcripts"
CLOSED = "closed"
SHOWN_BYTES_MAX = 512  # of one field of a request
Entry = dict[str, Any]


def mode() -> str:
    """`recorded`: what Kafka said is played, because the same Kafka says the same; `live`: it is asked, and compared
    with that, too; `record`: it is asked, and what it says is written down.
    """
    return os.environ.get("OTTLA_ORACLE") or "recorded"


class Stale(AssertionError):
    """The story and its transcript are not the same any more."""


# messages as JSON


def plain(value: Any, bytes_max: int | None = None) -> Any:
    """A message as JSON has it: fields that are not at their default; bytes as hex, longer ones than `bytes_max` as
    their size and CRC.
    """
    if hasattr(value, "unknown_tags"):
        fresh = type(value)()
        fields = ((name, getattr(value, name)) for name in value.__slots__)
        return {name: plain(found, bytes_max) for name, found in fields if found != getattr(fresh, name)}
    if isinstance(value, list | tuple):
        return [plain(one, bytes_max) for one in value]
    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
        return (
            data.hex()
            if bytes_max is None or len(data) <= bytes_max
            else f"{len(data)} bytes, CRC {zlib.crc32(data):08x}"
        )
    return value


def message(name: str, version: int, data: Any) -> Any:
    """The message that `plain` made `data` of, as it comes out of the codec."""
    loaded = schema.load(name)
    if version not in loaded.valid:
        loaded = schema.load_removed(name) or loaded
    return codec.parse(name, version, bytes(codec.build(name, version, _struct(loaded, loaded.root, data))))


def _struct(loaded: Schema, struct: StructSchema, data: dict[str, Any]) -> Any:
    made: Any = struct_class(loaded, struct)()
    for f in struct.fields:
        if f.name in data:
            setattr(made, f.name, _field(loaded, f, data[f.name]))
    if "unknown_tags" in data:
        made.unknown_tags = [(tag, bytes.fromhex(found)) for tag, found in data["unknown_tags"]]
    return made


def _field(loaded: Schema, f: FieldSchema, data: Any) -> Any:
    if data is None:
        return None
    return [_value(loaded, f, one) for one in data] if f.is_array else _value(loaded, f, data)


def _value(loaded: Schema, f: FieldSchema, data: Any) -> Any:
    if f.struct is not None:
        return _struct(loaded, f.struct, data)
    return bytes.fromhex(data) if f.element_type in ("uuid", "bytes", "records") else data


# transcripts


class Transcript:
    """What was said in one test, or is being said."""

    def __init__(self, test: str, playing: bool) -> None:
        module, _, story = test.rpartition("/")[2].partition(".py::")
        name = re.sub(r"[^\w.=,-]+", "-", story.removeprefix("test_")).strip("-")
        self.path = FOLDER / module.removeprefix("test_") / f"{name}.jsonl"
        self.playing = playing
        self.varies = False  # Kafka decides what the story is about, such as who has the controller
        self.connections = 0
        self.entries = self._read() if playing or self.path.exists() else []
        self.compared = (one for one in self.entries if one.get("compared"))  # in order, for `live`
        self.written: list[Entry] = []

    def _read(self) -> list[Entry]:
        if not self.path.exists():
            raise Stale(
                f"there is no transcript {self.path.relative_to(FOLDER.parents[1])}; `make transcripts` writes it"
            )
        return [json.loads(line) for line in self.path.read_text().splitlines()]

    def dial(self, address: str, client_id: str, source: str = "") -> Voice:
        """A connection to Kafka, or to what it said on its counterpart."""
        number = self.connections
        self.connections += 1
        if self.playing:
            return Player([one for one in self.entries if one["on"] == number])
        return Recorder(Wire(address, client_id=client_id, source=source), number, self.written)

    def write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = (json.dumps(one, separators=(",", ":"), ensure_ascii=False) for one in self.written)
        self.path.write_text("".join(f"{line}\n" for line in lines))


class Asks(Protocol):
    """A connection as the stories use it."""

    def ask(self, name: str, version: int, message: Any) -> Any: ...

    def say(self, name: str, version: int, message: Any) -> None: ...

    def reply(self, name: str, version: int) -> Any: ...

    def close(self) -> None: ...


class Voice(Asks, Protocol):
    """A connection to Kafka, or what stands for one. `last`: the entry of the last reply."""

    last: Entry

    def raw(self, frame: bytes) -> bytes: ...


class Recorder:
    """A connection whose requests and replies are written down."""

    def __init__(self, wire: Wire, number: int, written: list[Entry]) -> None:
        self.wire = wire
        self.number = number
        self.written = written
        self.said: list[Entry] = []
        self.last: Entry = {}

    def ask(self, name: str, version: int, message: Any) -> Any:
        self.say(name, version, message)
        return self.reply(name, version)

    def say(self, name: str, version: int, message: Any) -> None:
        self.said.append(
            {"on": self.number, "api": name, "version": version, "request": plain(message, SHOWN_BYTES_MAX)}
        )
        self.wire.say(name, version, message)

    def reply(self, name: str, version: int) -> Any:
        entry = self._heard()
        try:
            answer = self.wire.reply(name, version)
        except Closed:
            entry["reply"] = CLOSED
            raise
        entry["reply"] = plain(answer)
        return answer

    def raw(self, frame: bytes) -> bytes:
        """Sends bytes and returns the frame that is answered. Closed."""
        self.said.append({"on": self.number, "raw": frame.hex()})
        self.wire.send(frame)
        entry = self._heard()
        try:
            answer = self.wire.read_frame()
        except Closed:
            entry["reply"] = CLOSED
            raise
        entry["reply"] = answer.hex()
        return answer

    def _heard(self) -> Entry:
        self.last = self.said.pop(0)
        self.written.append(self.last)
        return self.last

    def close(self) -> None:
        self.wire.close()


class Player:
    """A connection on which Kafka says what it said when the transcript was written.

    A story that asks until something is there may ask more or less often than then: questions that were repeated are
    passed over, and the last answer is given again.
    """

    def __init__(self, entries: list[Entry]) -> None:
        self.entries = entries
        self.next = 0
        self.said: list[Entry] = []
        self.last: Entry = {}

    def ask(self, name: str, version: int, message: Any) -> Any:
        self.say(name, version, message)
        return self.reply(name, version)

    def say(self, name: str, version: int, message: Any) -> None:
        self.said.append({"api": name, "version": version, "request": plain(message, SHOWN_BYTES_MAX)})

    def reply(self, name: str, version: int) -> Any:
        answer = self._find(self.said.pop(0))["reply"]
        if answer == CLOSED:
            raise Closed
        return message(f"{name}Response", version, answer)

    def raw(self, frame: bytes) -> bytes:
        """What was answered to these bytes. Closed."""
        answer = self._find({"raw": frame.hex()})["reply"]
        if answer == CLOSED:
            raise Closed
        return bytes.fromhex(answer)

    def _find(self, asked: Entry) -> Entry:
        while self.next < len(self.entries) and self._is_repeated() and not _same(asked, self.entries[self.next]):
            self.next += 1
        found = self.entries[self.next] if self.next < len(self.entries) else None
        if found is None or not _alike(asked, found) or (_same(asked, self.last) and not _same(asked, found)):
            if not _same(asked, self.last):
                raise Stale(
                    f"the story asks {asked}, and the transcript has {found}; `make transcripts` writes it again"
                )
            return self.last
        self.next += 1
        self.last = found
        return found

    def _is_repeated(self) -> bool:
        return bool(self.last) and _same(self.last, self.entries[self.next])

    def close(self) -> None:
        self.said.clear()


def _alike(asked: Entry, found: Entry) -> bool:
    return all(asked.get(key) == found.get(key) for key in ("api", "version", "raw"))


def _same(asked: Entry, found: Entry) -> bool:
    return _alike(asked, found) and asked.get("request") == found.get("request")
