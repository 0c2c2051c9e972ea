"""A whole broker without sockets, threads or a clock: virtual time, files in memory, ids from a seed.

Everything but the connection is the real thing: dispatch, handlers, partitions, the controller, logs. So a run is
determined by its seed, and time passes only in `pass_ms`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ottla.broker.broker import Broker
from ottla.broker.clock import VirtualSchedule
from ottla.broker.config import sources as configuration
from ottla.broker.net.connection import Connection
from ottla.broker.net.intercepting import Seam
from ottla.broker.peer import Peer
from ottla.broker.replies import Reply
from ottla.broker.shards.host import S, ShardHost
from ottla.broker.shards.loader import log_entries
from ottla.protocol import codec, headers

from ottla.served import served_by

from .memory_files import MemFiles
from .wire import request_frame


class Answer:
    """A reply that may not have come yet."""

    def __init__(self) -> None:
        self.reply: Any = None
        self.done = False
        self.closed = False
        self.data = b""  # of the reply, with its header
        self.waiting: Any = None  # what a parked reply waits for

    @classmethod
    def of_closed(cls) -> Answer:
        """The end of the connection."""
        found = cls()
        found.done = found.closed = True
        return found


class World:
    """A broker on `files`, started. Another world may be made on the files that this one leaves."""

    def __init__(
        self, files: MemFiles | None = None, seed: int = 0, start_ms: int = 1_700_000_000_000, /, **settings: str
    ) -> None:
        self.files = files or MemFiles()
        self.chance = random.Random(seed)
        self.schedule = VirtualSchedule(start_ms)
        pairs = [f"{k.replace('_', '.')}={v}" for k, v in {"log_dirs": "/data", **settings}.items()]
        config = configuration.build(configuration.from_arguments(pairs))
        self.broker = Broker(config, self.schedule, self.files, lambda: self.chance.randbytes(16))
        self.fatal: list[str] = []
        self.broker.turn.fatal = self.fatal.append
        self.broker.start()
        served, make_dispatcher = served_by(config)
        self.dispatchers = {one.id: make_dispatcher(self.broker.of_node(one), served) for one in self.broker.nodes}
        self.dispatcher = self.dispatchers[config.node_id]
        self.connections: dict[Connection, None] = {}  # none has a socket
        self.seam = Seam(self)
        self.peer = Peer("PLAINTEXT", "127.0.0.1:1")

    def send(self, name: str, version: int, message: Any, peer: Peer | None = None, client_id: str = "wire") -> Answer:
        """A request as an input event, over the connection `peer`; time does not pass."""
        answer = self._taken(name, version, message, peer or self.peer, client_id)
        self.broker.turn.settle()
        return answer

    def at(self, node: int, name: str, version: int, message: Any) -> Any:
        """Sends a request to a node, and lets time pass until the reply is there."""
        before, self.dispatcher = self.dispatcher, self.dispatchers[node]
        try:
            return self.ask(name, version, message)
        finally:
            self.dispatcher = before

    def together(self, *requests: tuple[str, int, Any]) -> list[Answer]:
        """Requests of several connections that the broker finds in one turn."""
        answers = []
        for number, (name, version, message) in enumerate(requests):
            answers.append(self._taken(name, version, message, Peer("PLAINTEXT", f"127.0.0.1:{number + 2}")))
            self.broker.turn.settle_soon()
        self.pass_ms(0)
        return answers

    def _taken(self, name: str, version: int, message: Any, peer: Peer, client_id: str = "wire") -> Answer:
        answer = Answer()

        def take(reply: Reply | None, end: bool) -> None:
            answer.done, answer.closed = True, end
            if reply is not None:
                out = bytearray(reply.head)
                try:
                    for place, part in reversed(reply.parts):
                        out[place:place] = bytes(part)
                except (
                    Exception
                ):  # what is left of the reply cannot be had: the connection ends, as in `broker.connection`
                    answer.closed = True
                    return
                finally:
                    for _, part in reply.parts:
                        part.release()
                answer.data = bytes(out)
                start = 9 if headers.response_header_version(f"{name}Response", version) else 8
                answer.reply = codec.parse(f"{name}Response", version, answer.data, start)

        frame = memoryview(bytearray(request_frame(name, version, message, client_id=client_id)))[4:]
        answer.waiting = self.dispatcher.handle(peer, frame, take)
        return answer

    def ask(self, name: str, version: int, message: Any, within_ms: int = 60_000) -> Any:
        """Sends a request and lets time pass until the reply is there."""
        answer = self.send(name, version, message)
        for _ in range(within_ms):
            if answer.done:
                return answer.reply
            self.pass_ms(1)
        raise AssertionError(f"{name} was not answered within {within_ms} ms")

    def pass_ms(self, ms: int) -> None:
        self.schedule.advance(ms)

    def lose_power(self) -> MemFiles:
        return self.files.lose_power(self.chance)


@contextmanager
def told_with(seed: int) -> Iterator[None]:
    """Raises what goes wrong in a history as an AssertionError that names its seed."""
    try:
        yield
    except Exception as error:
        raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}") from error


def replayed(fresh: S, host: ShardHost[S]) -> S:
    """`fresh`, a shard like that of the host, after the records of the host's log."""
    read = host.owner.format()
    for entry in log_entries(host.partition.open_log()):
        decoded = read.decode(entry.record) if entry.record is not None else None
        if decoded is not None:
            fresh.replay(entry.offset, entry.producer_id, entry.producer_epoch, *decoded)
    return fresh
