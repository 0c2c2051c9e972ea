"""Asks two brokers the same and compares what they say, field by field.

A `Script` is a sequence of requests that mean the same to both: topic ids, node addresses and session ids are
translated by name. What may differ is a list with a reason for each entry (`ALLOWED`); error codes, messages, throttle
times and defaults are never on it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.errors import Errors

from ottla.testing import Broker

from ..oracle.kafka import Kafka
from . import transcripts
from .at_once import AT_ONCE
from .orders import may_be_in_any_order, ordered, shape
from .poll import until
from .transcripts import Asks, Transcript, Voice
from .wire import Closed, Wire

# API.field: why it may differ. `*` stands for any API.
ALLOWED = {
    "*.port": "two brokers have two ports",
    "*.topic_id": "ids are random",
    "*.cluster_id": "two clusters",
    "ApiVersions.finalized_features_epoch": "an offset of the metadata log, which Kafka fills with no-ops",
    "Fetch.session_id": "random",
    "InitProducerId.producer_id": "blocks of ids are fetched at different moments",
    "DescribeProducers.last_timestamp": "the moment of the append",
    "DescribeConfigs.documentation": "our own words",
    "Produce.log_append_time_ms": "the moment of the append",
    "*.member_id": "ids are random, as far as a coordinator makes them; their shape is not",
    "*.leader": "the id of a member",
    "EndTxn.producer_id": "blocks of ids are fetched at different moments",
    "DescribeTransactions.producer_id": "blocks of ids are fetched at different moments",
    "ListTransactions.producer_id": "blocks of ids are fetched at different moments",
    "WriteTxnMarkers.producer_id": "blocks of ids are fetched at different moments",
    "DescribeProducers.producer_id": "blocks of ids are fetched at different moments",
    "DescribeTransactions.transaction_start_time_ms": "the moment of its first partition",
    "ListOffsets.timestamp": "the moment of the append, where the topic's time is the log's",
    "SaslAuthenticate.auth_bytes": "SCRAM's nonces are random, and what is computed from them; the rest is compared",
    "DelegationToken.*": "ids are random, and HMACs with them; their lengths, and which moments there are, are not",
    "*.error_message": "a refused request of the cluster, which Kafka shows as a Java object",
}
_NONCE = re.compile(rb"(?<=^r=)[^,]+|(?<=^v=).+")
_OF_TOKENS = re.compile(r"(issue|expiry|max)_timestamp(_ms)?|token_id|hmac")
NEEDS = re.compile(r"^Request .* needs (\w+) permission\.$")
MOMENTS = {
    ("Produce", "log_append_time_ms"),
    ("DescribeProducers", "last_timestamp"),
    ("ListOffsets", "timestamp"),
    ("EndTxn", "producer_id"),
    ("InitProducerId", "producer_id"),
    ("DescribeTransactions", "producer_id"),
    ("DescribeTransactions", "transaction_start_time_ms"),
}


# Records of the stories are years old. A Kafka that lives for some minutes would delete them meanwhile.
WITHOUT_RETENTION: dict[str, object] = {"log.initial.task.delay.ms": 86_400_000}


@dataclass
class Tally:
    """What has been compared."""

    replies: int = 0
    differences: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    stories: set[Path] = field(default_factory=set)  # the transcripts of those that ran
    stale: list[str] = field(default_factory=list)  # where Kafka says something else than the transcript


@contextmanager
def told(tally: Tally, transcript: Transcript, mode: str) -> Iterator[Transcript]:
    """The time in which a story is told. AssertionError at its end if something differed; else its transcript is
    written where `mode` is `record`.
    """
    tally.stories.add(transcript.path)
    before, stale_before = len(tally.differences), len(tally.stale)
    yield transcript
    fresh = tally.differences[before:]
    assert not fresh, "\n".join([f"{len(fresh)} differences", *fresh[:12]])
    if mode == "record":
        transcript.write()
    else:
        stale = tally.stale[stale_before:]
        assert not stale, "\n".join(
            ["Kafka says something else than its transcript (`make transcripts` writes it again):", *stale[:12]]
        )
        assert transcript.entries, f"there is no transcript {transcript.path.name}; `make transcripts` writes it"


class Pair:
    """Two brokers and a connection to each; what Kafka says is written down, or comes from what was."""

    def __init__(
        self, ours: str, theirs: str, tally: Tally, transcript: Transcript, client_id: str = "wire", source: str = ""
    ) -> None:
        self.addresses = (ours, theirs)
        self.tally = tally
        self.transcript = transcript
        self.client_id = client_id
        self.source = source
        self.ours = self._dial_ours()
        self.theirs: Voice = transcript.dial(theirs, client_id, source)
        self.heard: dict[str, set[str]] = {}  # by API, the errors in Kafka's replies
        self.trims: dict[str, Callable[[Any], None]] = {}  # by API, takes out of a reply what other stories left

    def _dial_ours(self) -> Asks:
        return Wire(self.addresses[0], client_id=self.client_id, source=self.source)

    @property
    def wires(self) -> tuple[Asks, Asks]:
        """The connections to ours and to theirs."""
        return self.ours, self.theirs

    def beside(self, client_id: str, source: str = "") -> Pair:
        """Another connection to each, of another client; `source`: the address that it comes from."""
        other = Pair(*self.addresses, self.tally, self.transcript, client_id, source)
        other.heard = self.heard
        return other

    def errors(self, name: str) -> set[str]:
        """The errors that Kafka's replies to this API had in the story, at any depth; `NONE` is one of them."""
        return self.heard.get(name, set())

    def say(self, name: str, version: int, make: Callable[[int], Any]) -> None:
        """Sends to both what `make` makes for ours (0) and theirs (1); the replies are compared by `hear`. What is
        sent to ours afterwards, on any connection, comes after it.
        """
        self.ours.say(name, version, make(0))
        self._wait_until_ours_has_read()
        self.theirs.say(name, version, make(1))

    def _wait_until_ours_has_read(self) -> None:
        """A broker that finds requests on several connections at once need not read them in the order of their
        coming. It reads a new connection after all that it found when it accepted it.
        """
        with Wire(self.addresses[0]) as later:
            later.ask("ApiVersions", 0, m.ApiVersionsRequest())

    def hear(self, name: str, version: int) -> tuple[Any, Any]:
        mine, other = self.ours.reply(name, version), self.theirs.reply(name, version)
        self._compare(name, version, mine, other, "said before")
        return mine, other

    def both(self, name: str, version: int, make: Callable[[int], Any]) -> tuple[Any, Any]:
        """Asks both what `make` makes for ours (0) and theirs (1), and compares the replies."""
        return self.ask(name, version, make(1), make(0))

    def ask(self, name: str, version: int, message: Any, ours: Any = None) -> tuple[Any, Any]:
        """Sends `message` to both (`ours` to ours where it must differ) and compares the replies."""
        mine = self._one(self.ours, 0, name, version, message if ours is None else ours)
        other = self._one(self.theirs, 1, name, version, message)
        self._compare(name, version, mine, other, message)
        return mine, other

    def until(self, name: str, version: int, message: Any, done: Callable[[Any], bool]) -> None:
        """Asks each by itself, as often as it takes: what was said on another connection reaches each in its own
        time.
        """
        for side in (0, 1):

            def is_done(side: int = side) -> bool:
                return done(self._one(self.wires[side], side, name, version, message))

            until(is_done, f"{name} v{version}")

    def agree(self, name: str, version: int, message: Any) -> None:
        """Waits until both answer the same: Kafka's broker hears of a change after its controller has answered."""

        def is_same() -> bool:
            mine, other = (self._one(wire, side, name, version, message) for side, wire in enumerate(self.wires))
            return not self.unlike(name, mine, other)

        until(is_same, f"the same answer to {name} v{version}")

    def unlike(self, name: str, mine: Any, other: Any) -> list[str]:
        """Where two replies differ, and may not."""
        self._trim(name, mine, other)
        return [path for path, a, b in differences(name, mine, other) if not self._allowed(name, path, a, b)]

    def raw(self, frame: bytes) -> tuple[bytes | str, bytes | str]:
        """Sends bytes to both, each on a connection of its own; what each answers, or "closed"."""
        data = len(frame).to_bytes(4, "big") + frame
        theirs = self.transcript.dial(self.addresses[1], self.client_id)
        self.tally.replies += 1
        with Wire(self.addresses[0]) as ours:
            try:
                ours.send(data)
                mine: bytes | str = ours.read_frame()
            except Closed:
                mine = "closed"
        try:
            other: bytes | str = theirs.raw(data)
        except Closed:
            other = "closed"
        theirs.close()
        return mine, other

    def _compare(self, name: str, version: int, mine: Any, other: Any, message: Any) -> None:
        self.tally.replies += 1
        self._trim(name, mine, other)
        self.heard.setdefault(name, set()).update(errors_in(other))
        self._hold_against_transcript(name, version, other)
        for path, a, b in differences(name, mine, other):
            if self.transcript.playing and same_but_for_times(a, b):
                continue
            allowed = self._allowed(name, path, a, b)
            if allowed:
                self.tally.used.add(allowed)
            else:
                self.tally.differences.append(
                    f"{name} v{version} {path}: ottla {_short(a)}, Kafka {_short(b)}; request {message!r}"[:600]
                )

    def _hold_against_transcript(self, name: str, version: int, said: Any) -> None:
        """What Kafka says now and what it said when the transcript was written differ only where two brokers may."""
        self.theirs.last["compared"] = True
        if self.transcript.playing or self.transcript.varies or not self.transcript.entries:
            return
        entry = next(self.transcript.compared, None)
        if entry is None or (entry["api"], entry["version"]) != (name, version):
            self.tally.stale.append(f"{name} v{version}: the transcript has {entry}")
            return
        closed = entry["reply"] == transcripts.CLOSED
        before = "closed" if closed else transcripts.message(f"{name}Response", version, entry["reply"])
        self._trim(name, before)
        for path, a, b in differences(name, before, said):
            if not self._allowed(name, path, a, b) and not same_but_for_times(a, b):
                self.tally.stale.append(f"{name} v{version} {path}: Kafka {_short(b)}, in the transcript {_short(a)}")

    def _trim(self, name: str, *replies: Any) -> None:
        trim = self.trims.get(name)
        if trim is not None:
            for reply in replies:
                if hasattr(reply, "unknown_tags"):
                    trim(reply)

    def _one(self, wire: Asks, side: int, name: str, version: int, message: Any) -> Any:
        try:
            return wire.ask(name, version, message)
        except Closed:
            wire.close()
            if side == 0:
                self.ours = self._dial_ours()
            else:
                last = self.theirs.last
                self.theirs = self.transcript.dial(self.addresses[1], self.client_id, self.source)
                self.theirs.last = last
            return "closed"

    def _allowed(self, name: str, path: str, ours: Any, theirs: Any) -> str | None:
        last = path.rpartition(".")[2].partition("[")[0]
        if (name, last) in MOMENTS and (ours == -1) != (theirs == -1):
            return None
        if last == "error_message":
            needed = [NEEDS.search(str(text)) for text in (ours, theirs)]
            if not all(needed) or len({found[1] for found in needed if found}) > 1:
                return None
        if last == "auth_bytes" and _NONCE.sub(b"*", ours) != _NONCE.sub(b"*", theirs):
            return None
        if name.endswith("DelegationToken") and _OF_TOKENS.fullmatch(last):
            if isinstance(ours, int):
                return "DelegationToken.*" if (ours > 0) == (theirs > 0) else None
            return "DelegationToken.*" if len(ours) == len(theirs) else None
        if last == "documentation" and not (ours and theirs):
            return None
        if last in ("member_id", "leader") and shape(ours) != shape(theirs):
            return None
        for entry in (f"*.{last}", f"{name}.{last}"):
            if entry in ALLOWED:
                return entry
        return None

    def close(self) -> None:
        self.ours.close()
        self.theirs.close()


def errors_in(reply: Any) -> Iterator[str]:
    """The names of the errors of a reply, at any depth."""
    if reply == transcripts.CLOSED:
        yield transcripts.CLOSED
    elif isinstance(reply, list):
        for one in reply:
            yield from errors_in(one)
    elif hasattr(reply, "unknown_tags"):
        for name in reply.__slots__:
            value = getattr(reply, name)
            if name.endswith("error_code"):
                yield Errors(value).name
            elif isinstance(value, list) or hasattr(value, "unknown_tags"):
                yield from errors_in(value)


def differences(api: str, a: Any, b: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The places at which two messages of an API differ."""
    if hasattr(a, "unknown_tags") and type(a) is type(b):
        for name in a.__slots__:
            yield from differences(api, getattr(a, name), getattr(b, name), f"{path}.{name}")
    elif isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            yield f"{path}[]", a, b
            return
        if may_be_in_any_order(api, path):
            a, b = ordered(a), ordered(b)
        for index, (one, other) in enumerate(zip(a, b, strict=True)):
            yield from differences(api, one, other, f"{path}[{index}]")
    elif isinstance(a, memoryview) and isinstance(b, memoryview):
        if bytes(a) != bytes(b):
            yield path, bytes(a), bytes(b)
    elif a != b:
        yield path, a, b


def same_but_for_times(a: Any, b: Any) -> bool:
    """Whether two values are record batches that differ in nothing but when they were made."""
    if not isinstance(a, bytes) or not isinstance(b, bytes) or not a or len(a) != len(b):
        return False
    found = _timeless(a)
    return bool(found) and found == _timeless(b)


def _timeless(data: bytes) -> list[Any]:
    found: list[Any] = []
    for at in records.batches(data):
        base = at.header.base_timestamp
        span = 0 if at.header.is_append_time else at.header.max_timestamp - base
        rows = [(r.key, r.value, r.headers, r.offset, min(r.timestamp - base, span)) for r in records.decode(data, at)]
        found.append((at.header._replace(crc=0, base_timestamp=0, max_timestamp=span), rows))
    return found


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 300 else f"{text[:200]}… ({len(value) if hasattr(value, '__len__') else len(text)} long)"


def await_coordinators(servers: str) -> None:
    """Returns when a broker has its topics of groups, of transactions and of share-partitions' states, and has loaded
    them.
    """
    with Wire(servers) as wire:
        await_coordinators_of(wire.ask)


def await_coordinators_of(ask: Callable[[str, int, Any], Any]) -> None:
    """As above; `ask` asks the broker."""
    for kind, key in ((0, "g"), (1, "t"), (2, f"g:{'A' * 22}:0")):
        find = m.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        lister = (
            ("ListTransactions", 0, m.ListTransactionsRequest())
            if kind == 1
            else ("ListGroups", 4, m.ListGroupsRequest())
        )

        def is_loaded(find: Any = find, lister: Any = lister) -> bool:
            found = ask("FindCoordinator", 6, find).coordinators[0]
            return bool(found.error_code == 0 and ask(*lister).error_code == 0)

        until(is_loaded, f"a coordinator of type {kind}")


class Kept:
    """The brokers of the module that ran last. The next one takes them over where it wants the same settings, so that
    the modules of one subject, which run after each other, start one Kafka.
    """

    def __init__(self) -> None:
        self._running = ExitStack()
        self._settings: dict[str, object] = {}
        self._pair: tuple[Broker, str] | None = None

    def pair(self, settings: dict[str, object]) -> tuple[Broker, str]:
        """Ours, and Kafka's address; the address is empty where transcripts are played."""
        if self._pair is None or self._settings != settings:
            self.close()
            ours = self._running.enter_context(Broker({**AT_ONCE, **settings}, lab=False))
            plays = transcripts.mode() == "recorded"
            plugin = str(settings.get("metric.reporters", ""))
            oracle = Kafka(settings | WITHOUT_RETENTION, plugin=plugin, own_process=True)
            kafka = "" if plays else self._running.enter_context(oracle).bootstrap_servers
            self._settings, self._pair = settings, (ours, kafka)
        return self._pair

    def close(self) -> None:
        self._running.close()
        self._pair = None


def own_brokers(settings: dict[str, object]) -> tuple[Any, Any, Any]:
    """A module's fixtures `kafka`, `ours` and `coordinators`: both brokers with these settings, and their coordinators
    loaded.

    Ours is strict: what ottla does otherwise to save time is off.
    """

    @pytest.fixture(scope="module")
    def kafka(kept: Kept) -> str:
        return kept.pair(settings)[1]

    @pytest.fixture(scope="module")
    def ours(kept: Kept) -> Broker:
        return kept.pair(settings)[0]

    @pytest.fixture(scope="module", autouse=True)
    def coordinators(kafka: str, ours: Broker, settled: None) -> None:
        for servers in filter(None, (ours.bootstrap_servers, kafka)):
            await_coordinators(servers)

    return kafka, ours, coordinators
