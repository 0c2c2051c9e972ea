"""Brokers of Kafka beside this one in ZooKeeper. As their controller, this broker sends them its topics and of all
brokers (UpdateMetadata), so that clients which begin at one of them find what is here; and they are named to clients.

That is all that they get. They lead nothing (LeaderAndIsr), because a partition here has its replicas in this process:
a Kafka that was a replica would fetch from the leader as a follower, and its own log would have to count for the high
watermark and in elections. One coroutine sends, and a thread of its own waits for them.
"""

from __future__ import annotations

import logging
import socket
import struct
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from functools import partial
from itertools import count, islice
from typing import Final

from ...coordinator.metadata.delta import MetadataDelta
from ...coordinator.metadata.state import MetadataState
from ...protocol.errors import ApiError, Errors, MalformedMessage
from ...protocol.update_metadata import LEADER_DURING_DELETE, ToldBroker, ToldPartition, error_of, request
from ...protocol.zookeeper_values import BrokerRegistration, EndPoint
from ..later import Later
from ..steps import Pace
from ..turn import Turn
from .session import Thread

logger = logging.getLogger("ottla.kafka.controller.ControllerChannelManager")
TIMEOUT_SECONDS: Final = 5
RETRY_MS: Final = 1000
RETRY_MS_MAX: Final = 30_000  # of one that refuses, such as for its rights: it would be sent everything each time
AT_ONCE: Final = 1000  # partitions in one request
REPLY_BYTES: Final = 6
CHANGED_MAX: Final = 100_000
ID_MAX: Final = (1 << 31) - 1
PORT_MAX: Final = (1 << 16) - 1
TEXT_MAX: Final = 255  # of a host or a rack

Prepare = Callable[[], Awaitable[None]]
"""Makes what has to be there before anything is sent to them. Raises ApiError."""
Ask = Callable[[EndPoint, list[bytes]], list[bytes]]
"""Sends frames to a broker, each after the reply to the one before; returns the replies. Raises OSError."""


class Neighbours:
    """`own`: the ids of this broker; `registered`: the others, as ZooKeeper has them."""

    def __init__(
        self,
        turn: Turn,
        image: MetadataState,
        own: Mapping[int, object],
        thread: Thread,
        ask: Ask,
        prepare: Prepare,
    ) -> None:
        self._turn = turn
        self._image = image
        self._own = own
        self._thread = thread
        self._ask = ask
        self._prepare = prepare
        self.registered: dict[int, BrokerRegistration] = {}
        self._epochs: dict[int, int] = {}  # of all brokers, this one among them
        self._behind: set[int] = set()  # who has to be told everything
        self._changed: dict[tuple[str, int], bool] = {}  # partitions, and whether they are gone
        self._controller = -1, 0
        self._brokers: tuple[ToldBroker, ...] = ()
        self._correlation_ids = count(1)
        self._is_telling = False
        self._is_woken = False
        self._failed: set[int] = set()  # who could not be told, which was said
        self._retry_ms = RETRY_MS

    def found(self, registered: Mapping[int, BrokerRegistration]) -> None:
        """Notes who is there."""
        others = {number: one for number, one in registered.items() if number not in self._own and _fits(number, one)}
        self._behind = {one for one in self._behind if one in others}
        self._behind |= {number for number, one in others.items() if self.registered.get(number) != one}
        self._failed &= others.keys()
        self.registered = others
        self._epochs = {number: one.epoch for number, one in registered.items()}

    def check_epoch(self, node_id: int, epoch: int) -> None:
        """Raises ApiError, as Kafka's controller, unless a broker is registered, this one or another, and its
        registration has this epoch.
        """
        found = self._epochs.get(node_id)
        if found is None:
            raise ApiError(Errors.BROKER_ID_NOT_REGISTERED)
        if found != epoch:
            raise ApiError(Errors.STALE_BROKER_EPOCH)

    def changed(self, delta: MetadataDelta) -> Iterator[None]:
        """Notes what a commit has changed, in steps; nothing while there is no broker to tell."""
        if not self.registered:
            return
        for topic in delta.removed:
            for index in range(topic.partitions):
                self._changed[topic.name, index] = True
                yield
        for topic_id, index in (*delta.new_partitions, *delta.changed_partitions):
            name = self._image.topic_names.get(topic_id)
            if name is not None:
                self._changed[name, index] = False
            yield
        if len(self._changed) > CHANGED_MAX:  # nothing is sent while another broker is the controller
            self._changed.clear()
            self._behind |= self.registered.keys()

    def tell(self, controller: tuple[int, int], own: Iterable[ToldBroker]) -> None:
        """Sends the others what they do not know yet. `controller`: id and epoch of this broker as controller."""
        others = [_told(number, one) for number, one in self.registered.items()]
        brokers = (*own, *(one for one in others if one is not None))
        if not self.registered:
            self._changed.clear()
            return
        if (controller, brokers) != (self._controller, self._brokers):
            self._controller, self._brokers = controller, brokers
            self._behind |= self.registered.keys()
        self._is_woken = bool(self._behind or self._changed)
        if self._is_woken and not self._is_telling:
            self._is_telling = True
            self._turn.background(self._run())

    async def _run(self) -> None:
        try:
            while self._is_woken and not self._turn.stopped:
                self._is_woken = False
                with suppress(ApiError):  # it is tried again before the next time that something is sent
                    await self._prepare()
                behind, self._behind = self._behind, set()
                changed, self._changed = self._changed, {}
                for number, registration in list(self.registered.items()):
                    names = self._all() if number in behind else iter(changed.items())
                    if not await self._tell(number, registration, await self._frames(names)):
                        self._behind.add(number)
                if self._behind:
                    self._turn.later(self._retry_ms, self._again)
                    self._retry_ms = min(2 * self._retry_ms, RETRY_MS_MAX)
                else:
                    self._retry_ms = RETRY_MS
        finally:
            self._is_telling = False

    def _again(self) -> None:
        self.tell(self._controller, [one for one in self._brokers if one.id in self._own])

    def _all(self) -> Iterator[tuple[tuple[str, int], bool]]:
        for name in list(self._image.topics):
            topic = self._image.topics.get(name)
            for index in range(self._image.partition_counts.get(topic.id, 0) if topic is not None else 0):
                yield (name, index), False

    async def _frames(self, wanted: Iterator[tuple[tuple[str, int], bool]]) -> list[tuple[int, bytes]]:
        """Returns requests with their numbers: one at least, which names the brokers."""
        frames: list[tuple[int, bytes]] = []
        pace = Pace(self._turn)
        while (some := list(islice(wanted, AT_ONCE))) or not frames:
            partitions = []
            for place, is_gone in some:
                partitions += self._partition(place, is_gone)
                if pace.is_over():
                    await pace.rest()
            number = next(self._correlation_ids)
            frames.append((number, request(self._controller, partitions, self._brokers, number)))
        return frames

    def _partition(self, place: tuple[str, int], is_gone: bool) -> list[ToldPartition]:
        name, index = place
        topic = self._image.topics.get(name)
        found = None if topic is None else self._image.partitions.get((topic.id, index))
        if found is not None:
            return [ToldPartition(name, index, found.leader, found.leader_epoch, found.isr, found.replicas)]
        return [ToldPartition(name, index, LEADER_DURING_DELETE, 0, (), ())] if is_gone else []

    async def _tell(self, number: int, registration: BrokerRegistration, frames: list[tuple[int, bytes]]) -> bool:
        """Sends requests to a broker; returns whether it has taken them."""
        at = registration.plaintext
        if at is None:
            return True
        try:
            replies = await self._run_in_thread(partial(self._ask, at, [frame for _, frame in frames]))
            errors = [error_of(reply, sent) for reply, (sent, _) in zip(replies, frames, strict=True)]
        except (OSError, MalformedMessage) as error:
            self._warn(number, repr(error))
            return False
        wrong = next((error for error in errors if error), None)
        if wrong is not None:
            self._warn(number, f"error {wrong}")
            return False
        self._failed.discard(number)
        return True

    def _warn(self, number: int, reason: str) -> None:
        if number not in self._failed:
            self._failed.add(number)
            logger.warning("broker %d cannot be told of topics (%s); it is tried again", number, reason)

    def _run_in_thread(self, work: Callable[[], list[bytes]]) -> Later[list[bytes]]:
        later: Later[list[bytes]] = Later()

        def done(result: list[bytes] | None, error: BaseException | None) -> None:
            self._turn.event(lambda: later.settle(result, error))

        self._thread.run(work, done)
        return later

    def close(self) -> None:
        self._thread.close()


def _fits(number: int, registration: BrokerRegistration) -> bool:
    """Whether a reply can name a broker. Anybody who may write to ZooKeeper may have registered it."""
    texts = [registration.rack or "", *(one.host or "" for one in registration.endpoints)]
    has_texts = all(len(text) <= TEXT_MAX and text.isprintable() for text in texts)
    return number <= ID_MAX and has_texts and all(0 <= one.port <= PORT_MAX for one in registration.endpoints)


def _told(number: int, registration: BrokerRegistration) -> ToldBroker | None:
    at = registration.plaintext
    return None if at is None else ToldBroker(number, at.host or "", at.port)


def ask(at: EndPoint, frames: list[bytes]) -> list[bytes]:
    """Sends frames over a connection (`Ask`)."""
    replies = []
    with closing(_connection(at.host or "localhost", at.port)) as connection:
        for frame in frames:
            connection.sendall(frame)
            (size,) = struct.unpack(">i", _read(connection, 4))
            if size != REPLY_BYTES:
                raise OSError(f"a reply of {size} bytes")
            replies.append(_read(connection, size))
    return replies


def _connection(host: str, port: int) -> socket.socket:
    """Raises OSError, for a name that no host can have, too."""
    try:
        return socket.create_connection((host, port), TIMEOUT_SECONDS)
    except UnicodeError as error:
        raise OSError(f"{host} is not the name of a host: {error}") from None


def _read(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        some = connection.recv(size - len(found))
        if not some:
            raise OSError("the connection was closed")
        found += some
    return found
