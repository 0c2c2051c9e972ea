"""Traces of many clients at once, as bytes, of the scripts that keep and break rules: what a broker writes, and what
happens to it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from .verdict_cases import CASES
from .verdict_script import Script

HEAD: dict[str, Any] = {
    "event": "trace", "format": 1, "at_ms": 0, "mono_us": 0, "clock_ms": 1_790_000_000_000, "broker": "ottla 1",
    "cluster_id": "c", "node_id": 1, "raw": "none", "filters": None,
}  # fmt: skip
NAMES = ("connection", "peer", "listener", "principal", "client_id", "software", "software_version", "exchange")
OTHERS = ("api", "key", "version", "correlation_id", "size", "message")
SOFTWARE = ("apache-kafka-java", "librdkafka", "unknown")
Line = dict[str, Any]


def bytes_of(line: Line, separators: tuple[str, str] = (",", ":")) -> bytes:
    """A line as a broker writes it: its fields in this order."""
    first = ("event", "format", "at_ms", "mono_us")
    order = [name for name in (*first, *NAMES, *OTHERS) if name in line]
    return json.dumps({name: line[name] for name in order} | line, separators=separators).encode()


class Traced:
    """A trace by chance: `clients` of them, some of which share a connection."""

    def __init__(self, seed: int, clients: int) -> None:
        self._chance = random.Random(seed)
        self._exchange = 0
        self._clients = clients

    def lines(self, accidents: float = 0.0) -> list[bytes]:
        """The lines. `accidents`: how often something happens to a trace between two of them."""
        chance, waiting = self._chance, [list(self._client(number)) for number in range(self._clients)]
        found = [bytes_of(HEAD)]
        while waiting := [one for one in waiting if one]:
            of_client = chance.choice(waiting)
            for _ in range(min(chance.randint(1, 4), len(of_client))):
                separators = (", ", ": ") if chance.random() < accidents else (",", ":")
                found.append(bytes_of(of_client.pop(0), separators))
                if chance.random() < accidents:
                    found.append(self._accident())
        return found

    def _client(self, number: int) -> Iterator[Line]:
        chance = self._chance
        script = Script()
        for name in chance.sample(sorted(CASES), 2):
            CASES[name](script, chance.random() < 0.5)
        base = 10 * (number if chance.random() < 0.8 else chance.randrange(self._clients))
        client_id, port = chance.choice((f"client-{number}", "same", None)), 5000 + number
        software = chance.choice(SOFTWARE)
        exchanges: dict[int, int] = {}
        for line in script.lines:
            line["connection"] += base
            line["peer"] = f"10.0.0.{number % 3}:{port}"
            if "exchange" in line:
                self._exchange += line["exchange"] not in exchanges
                line["exchange"] = exchanges.setdefault(line["exchange"], self._exchange)
                has_named = exchanges and line["api"] != "ApiVersions"
                line |= {"client_id": client_id, "listener": "PLAINTEXT", "principal": "User:ANONYMOUS"}
                line |= {"software": software if has_named else "unknown", "software_version": "1"}
            yield line

    def _accident(self) -> bytes:
        connection = 10 * self._chance.randrange(self._clients) + 1
        opened: Line = {"event": "opened", "at_ms": 1, "mono_us": 1, "connection": connection, "peer": "10.0.0.9:1"}
        closed = {**opened, "event": "closed"}
        again = {**HEAD, "clock_ms": HEAD["clock_ms"] + 3_600_000}
        dropped: Line = {"event": "dropped", "at_ms": 1, "mono_us": 1, "count": 3}
        cut = b'{"event":"request","at_ms":1,"mono_us":2,"connection":1,"peer":"10.'
        made = [opened, closed, HEAD, again, dropped]
        return self._chance.choice([*map(bytes_of, made), cut, cut + bytes_of(again)])


def of_case(id: str, right: bool, client_id: str, software: str, version: str, at_ms: int) -> list[bytes]:
    """The lines of a client that keeps a rule, or breaks it."""
    script = Script()
    CASES[id](script, right)
    who = {"client_id": client_id, "software": software, "software_version": version}
    lines = [line | who if "exchange" in line else line for line in script.lines]
    return [bytes_of({**line, "at_ms": at_ms + line["at_ms"]}) for line in lines]
