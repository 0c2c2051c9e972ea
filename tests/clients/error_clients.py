"""Clients that do one thing for each API, and report the error that they raise or find in what they get."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Timer
from typing import NamedTuple, Protocol

ENDED = "the process has ended"
TOPIC, GROUP = "errors", "errors-group"
WITHIN_S = 60.0
SESSION_MS = 1500  # after an UNKNOWN_MEMBER_ID the member that there was is waited for
CLIENTS = ["Produce", "Fetch", "JoinGroup"]  # what producers and consumers do
IN_GROUPS = ["SyncGroup", "Heartbeat", "LeaveGroup"]
HEARTBEAT_MS = 50
FETCH_WAIT_MS = 20
FETCHES_MAX = 100  # of a member, each of up to FETCH_WAIT_MS, without the heartbeats
BEATS = 3  # heartbeats of a member that goes on after an error of one
Heard = int | str
"""The code of an error, 0 for none; or the words of an exception that is not Kafka's."""
USER, PASSWORD = "alice", "alice-secret"
Does = Callable[[str], object]
"""Does something; gets a new name."""


class Addresses(NamedTuple):
    """Where the broker is. `secured`: its listener where clients log in; `lab`: its HTTP API."""

    bootstrap: str
    secured: str
    lab: str


class Client(Protocol):
    """A client under test."""

    def prepare(self, topic: str) -> None:
        """Creates a topic of one partition."""

    def do(self, api: str, name: str) -> Heard:
        """Does what needs the API; returns the error."""

    def close(self) -> None: ...


class Program:
    """A client in a process of its own, which gets lines (`API NAME`) and answers them (`heard CODE`).

    One that ends, as librdkafka does at some errors, is started again for the next line.
    """

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._process: subprocess.Popen[str] | None = None

    def prepare(self, topic: str) -> None:
        assert self.do("prepare", topic) == 0

    def do(self, api: str, name: str) -> Heard:
        if self._process is None:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(
                self._command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        late = Timer(3 * WITHIN_S, self._process.kill)
        late.start()
        try:
            self._process.stdin.write(f"{api} {name}\n")
            self._process.stdin.flush()
            while line := self._process.stdout.readline():
                found = re.fullmatch(r"heard (.*)\n", line)
                if found:  # other lines are the client's log
                    return int(found[1]) if found[1].lstrip("-").isdecimal() else found[1]
        finally:
            late.cancel()
        self.close()
        return ENDED

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


def operations_of_java() -> list[str]:
    source = (Path(__file__).parent / "java" / "ErrorCodes.java").read_text()
    return [name for name in re.findall(r'Map\.entry\("(\w+)"', source) if name != "prepare"]


def operations_of_go(client: str) -> list[str]:
    """The APIs for which the Go program can do something with a client: `franz` or `sarama`."""
    source = "".join(one.read_text() for one in sorted((Path(__file__).parent / "go").glob("errors*.go")))
    functions = re.findall(rf"^func {client}\w*Codes\(.*?^}}", source, re.MULTILINE | re.DOTALL)
    return [name for one in functions for name in re.findall(r'^\t\t"([A-Z]\w+)": ', one, re.MULTILINE)]


def operations_of_node() -> list[str]:
    source = (Path(__file__).parent / "node" / "errors.js").read_text()
    return re.findall(r"^  ([A-Z]\w+): ", source, re.MULTILINE)


def asked(lab: str, client_id: str) -> Counter[str]:
    """How often a client has asked each API, on the connections that it has."""
    with urllib.request.urlopen(f"{lab}/v1/clients?limit=1000", timeout=WITHIN_S) as answer:
        clients = json.loads(answer.read())["clients"]
    found: Counter[str] = Counter()
    for one in clients:
        if one["client_id"] == client_id:
            for api, count in one["requests"].items():
                found[api.split()[0]] += count
    return found


class NoMoreHeartbeats(Exception):
    """A member goes on without heartbeats."""


def until_beaten(lab: str, name: str, polls: Callable[[], object]) -> None:
    """Lets a member, with the client id `name`, poll until it has sent more heartbeats.

    Raises NoMoreHeartbeats: it has fetched so often that it would have sent them.
    """
    begun = asked(lab, name)["Fetch"]
    while (found := asked(lab, name))["Heartbeat"] < BEATS:
        if found["Fetch"] - begun > FETCHES_MAX:
            raise NoMoreHeartbeats("no more heartbeats")
        polls()


def new_name() -> str:
    return f"errors-{uuid.uuid4().hex[:10]}"
