"""The broker in ZooKeeper, as a broker of an earlier release: registered, with its topics, and open to old tools.

The metadata log decides what is; ZooKeeper shows it, and what tools write there becomes a change of the metadata. One
coroutine does both, round by round: it reads what has changed there (`tree`), changes the metadata accordingly
(`adopting`), and writes what has changed here (`publishing`). A round follows a watch that fires, a commit of the
metadata and a new connection; what fails is done again in a later one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Final

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from ...coordinator.metadata.controller import PRODUCER_ID_BLOCK
from ...coordinator.metadata.delta import MetadataDelta
from ...coordinator.metadata.state import MetadataState
from ...protocol import zookeeper_paths as paths
from ...protocol import zookeeper_values as values
from ...protocol.config_def import numbers_of
from ...protocol.errors import ApiError, Errors
from ...protocol.update_metadata import ToldBroker
from ...protocol.zookeeper_json import Malformed
from ...protocol.zookeeper_values import BrokerRegistration, EndPoint
from ...storage.files import Files
from .. import bugs
from ..config.config import Config, ZooKeeperError
from ..config.nodes import Node, Nodes
from ..controller.controller import MetadataController
from ..later import Later
from ..steps import Pace, in_steps
from ..turn import Turn
from .adopting import Adopter
from .agreed import FILE, Agreed
from .entities import Entities
from .kind import Changes
from .neighbours import Neighbours
from .publishing import Publisher
from .session import FAILURES, Session, Thread, make_chroot
from .tree import PIPELINED, Tree
from .writing import (
    Conflict,
    Put,
    Taken,
    Write,
    Written,
    foreign_controller,
    hold,
    next_controller_epoch,
    reserve_producer_ids,
    write_all,
)

logger = logging.getLogger("ottla.kafka.zookeeper.ZooKeeperClient")
RETRY_MS: Final = 1000
POLL_MS: Final = 200  # until a node of an earlier session is looked for again
CLUSTER_ID_SINCE: Final = (0, 10, 1)
PRODUCER_IDS_SINCE: Final = (0, 11)
FEATURE_SINCE: Final = (2, 7)
UNREADABLE: Final = (-1, int(Errors.UNKNOWN_SERVER_ERROR))
"""The offset and the error of a partition whose offset cannot be read."""


class ZooKeeper:
    """`client`: makes a client of kazoo for the configured hosts. `check`: raises ApiError for values of one broker
    that its listeners cannot have.
    """

    def __init__(
        self,
        turn: Turn,
        config: Config,
        nodes: Nodes,
        metadata: MetadataController,
        image: MetadataState,
        files: Files,
        thread: Thread,
        client: Callable[[Config], KazooClient],
        check: Callable[[Changes], None],
        neighbours: Neighbours,
    ) -> None:
        self._turn = turn
        self._config = config
        self._nodes = nodes
        self._metadata = metadata
        self._image = image
        self._release = numbers_of(config.emulates or "")
        timeout_ms = config["zookeeper.connection.timeout.ms"]
        self._timeout_ms: int = config["zookeeper.session.timeout.ms"]
        waits_ms = self._timeout_ms if timeout_ms is None else timeout_ms
        self._session = Session(turn, thread, client(config), waits_ms, self._timeout_ms, self._connected)
        self._agreed = Agreed(files, f"{config.log_dirs[0]}/{FILE}")
        entities = Entities(metadata, image, config, nodes.by_id, self._release, check)
        has = entities.rights is not None, entities.tokens is not None
        self._tree = Tree(lambda: self._session.post(self._wake), *has, entities.learn)
        self._entities = entities
        self._publisher = Publisher(image, self._release, self._agreed, entities)
        parts = self._publisher, self._agreed, entities
        self._adopter = Adopter(metadata, image, *parts, config["delete.topic.enable"])
        self._registered: dict[int, int] = {}  # when each node was, by id
        self._held: dict[str, bytes] = {}  # ephemeral nodes
        self._held_in: int | None = None  # the session that made them
        self._shown_in: int | None = None  # the session in which everything was written
        self._controller, self._controller_epoch = -1, 0
        self._taken: str | None = None  # a node that belongs to another session
        self._reserved = 0  # the producer id after those that are given away, as shown
        self.neighbours = neighbours
        self._woken: Later[None] | None = None
        self._is_woken = False
        metadata.watch(self._changed)
        metadata.quorum.changed = self._wake

    # start and stop

    async def connect(self) -> None:
        """Connects, and makes what a broker of the release makes. Takes over the cluster's id if the configuration
        names none. Fails with ZooKeeperError, and OSError if the file of what was agreed on cannot be read.
        """
        self._agreed.load()
        await self._session.connect()
        await self._session.run(lambda _: self._learn())
        if self._release >= CLUSTER_ID_SINCE:
            found, given = await self._session.run(_cluster_id), self._config["ottla.cluster.id"]
            if found is not None and given and found != given:
                raise ZooKeeperError(f"{paths.CLUSTER_ID} in ZooKeeper is {found}, and ottla.cluster.id is {given}")
            self._config.values["ottla.cluster.id"] = found or given

    def _learn(self) -> None:
        """Opens the passwords that both agreed on before."""
        for entity in self._agreed.entities():
            for found in self._agreed.states(entity) or ():
                self._entities.learn(entity, found)

    def _prepare(self, client: KazooClient) -> None:
        make_chroot(client)
        for path in paths.persistent_paths(self._release):
            client.ensure_path(path)
        for path in paths.acl_paths(self._release) if self._entities.rights is not None else ():
            client.ensure_path(path)
        for path in (paths.TOKENS, paths.TOKEN_CHANGES) if self._entities.tokens is not None else ():
            client.ensure_path(path)
        if self._release >= FEATURE_SINCE and client.exists(paths.FEATURE) is None:
            client.create(paths.FEATURE, values.feature(self._release))

    async def register(self, cluster_id: str) -> None:
        """Registers the nodes and shows the metadata, after the start of the broker. Fails with ZooKeeperError: a
        node's id is in use, or the brokers of another cluster are there.
        """
        if self._release >= CLUSTER_ID_SINCE:
            write: list[Write] = [Put(paths.CLUSTER_ID, values.cluster_id(cluster_id))]
            await self._session.run(partial(write_all, writes=write))
        waited_ms = 0
        while (taken := await self._hold()) is not None:
            self._refuse(taken, waited_ms)
            await self._turn.pause(POLL_MS)
            waited_ms += POLL_MS
        if self._entities.rights is not None:
            await in_steps(self._turn, self._entities.rights.load())
        await self._round()
        self._turn.background(self._run())

    def close(self) -> None:
        """Ends the session: the nodes of this broker are gone. May wait for seconds, and does not use the loop."""
        self._session.close()
        self.neighbours.close()

    # what the broker holds

    def _refuse(self, taken: Taken, waited_ms: int) -> None:
        """Raises ZooKeeperError unless the node may be one of an earlier run of this broker, whose session ends."""
        other = foreign_controller(taken, self._nodes.by_id)
        if other is not None:
            raise ZooKeeperError(
                f"zookeeper.connect: broker {other} of another cluster is the controller there; give this one a path "
                "of its own, as in 127.0.0.1:2181/ottla"
            )
        if waited_ms > self._timeout_ms + RETRY_MS or not self._is_ours(taken):
            raise ZooKeeperError(
                f"A broker is already registered on the path {taken.path}. This probably indicates that you either "
                "have configured a brokerid that is already in use, or else you have shutdown this broker and "
                "restarted it faster than the zookeeper timeout so it appears to be re-registering."
            )

    def _is_ours(self, taken: Taken) -> bool:
        """Whether a node can be of an earlier run: it names the place where this one listens."""
        if taken.path == paths.CONTROLLER:
            return True
        try:
            found = BrokerRegistration.decode(taken.data)
        except Malformed:
            return False
        own = self._end_points(self._nodes.by_id[int(taken.path.rpartition("/")[2])])
        return any((one.host, one.port) == (other.host, other.port) for one in own for other in found.endpoints)

    def _end_points(self, node: Node) -> tuple[EndPoint, ...]:
        protocol = node.config.security_protocol
        return tuple(
            EndPoint(one.name, protocol(one.name).name, one.host or None, one.port)
            for one in node.config.advertised.values()
        )

    def _wanted(self, controller: int) -> dict[str, bytes]:
        """Returns the ephemeral nodes that are to be there: of all nodes that are not fenced, and of the controller."""
        now_ms, wanted = self._turn.now_ms(), dict[str, bytes]()
        for node in self._nodes:
            found = self._image.brokers.get(node.id)
            if found is None or found.fenced:
                self._registered.pop(node.id, None)
                continue
            since_ms = self._registered.setdefault(node.id, now_ms)
            registration = BrokerRegistration(self._end_points(node), since_ms, node.rack)
            wanted[paths.broker_path(node.id)] = registration.encode(self._release)
        if controller >= 0:
            before = self._held.get(paths.CONTROLLER)
            if before is None or controller != self._controller:
                before = values.controller(controller, now_ms, self._release)
            wanted[paths.CONTROLLER] = before
        return wanted

    async def _hold(self) -> Taken | None:
        """Makes and removes ephemeral nodes; returns the first one that another session has."""
        session = self._session.id
        if session is not None and session != self._held_in:
            self._held, self._held_in, self._registered = {}, session, {}
            await self._session.run(self._prepare)
        controller = self._metadata.quorum.leader
        wanted = self._wanted(controller)
        if wanted == self._held:
            return None
        taken = await self._session.run(partial(hold, wanted=wanted, held=list(self._held)))
        is_elected = paths.CONTROLLER not in self._held or controller != self._controller
        others = {one.path for one in taken}
        if paths.CONTROLLER in wanted.keys() - others and is_elected:
            self._controller_epoch = await self._session.run(next_controller_epoch)
        self._held = {path: data for path, data in wanted.items() if path not in others}
        self._controller = controller
        return taken[0] if taken else None

    # rounds

    def _connected(self) -> None:
        """There is a connection, maybe with a new session."""
        self._tree.reconnected()
        self._wake()

    def _changed(self, delta: MetadataDelta) -> Iterator[None]:
        yield from self._publisher.changed(delta)
        yield from self.neighbours.changed(delta)
        self._wake()

    def _wake(self) -> None:
        self._is_woken = True
        if self._woken is not None:
            woken, self._woken = self._woken, None
            self._turn.event(lambda: woken.finish(None))

    async def _run(self) -> None:
        while not self._turn.stopped:
            if not self._is_woken:
                self._woken = Later()
                await self._woken
            self._is_woken = False
            try:
                taken = await self._hold()
                if taken is None or taken.path != paths.CONTROLLER:
                    await self._round()
            except (*FAILURES, ApiError, OSError, ZooKeeperError) as error:
                if not self._session.is_closing:
                    logger.warning("ZooKeeper: %r; it is tried again", error)
                self._again()
            except Exception as error:
                bugs.report("a round with ZooKeeper", error)
                self._again()
            else:
                self._note_taken(taken)

    def _note_taken(self, taken: Taken | None) -> None:
        """A node belongs to another session: it is tried again. Of several brokers only the controller writes topics:
        if another one is that, this one reads and writes nothing, and everything once it is the controller again.
        """
        if taken is not None:
            if taken.path != self._taken:
                logger.warning("%s belongs to another session (%r); it is tried again", taken.path, taken.data)
            self._turn.later(RETRY_MS, self._wake)
            if taken.path == paths.CONTROLLER:
                self._shown_in = None
        self._taken = None if taken is None else taken.path

    def _again(self) -> None:
        self._tree.again()
        self._turn.later(RETRY_MS, self._wake)

    async def _round(self) -> None:
        is_new, pace = self._shown_in != self._held_in, Pace(self._turn)
        if is_new:  # ZooKeeper may have lost what it had, and tools may have changed it
            self._publisher.forget()
            self._tree.again()
        await self._reserve(is_new)
        seen = await self._session.run(partial(self._tree.read, now_ms=self._turn.now_ms()))
        if seen.tree is not None:
            self._agreed.begin(seen.tree)
        if seen.brokers is not None:
            self.neighbours.found(seen.brokers)
        await self._advance(seen.next_producer_id)
        writes = await self._adopter.adopt(seen)
        if is_new:
            for _ in self._publisher.all():
                if pace.is_over():
                    await pace.rest()
            self._shown_in = self._held_in
        await self._publish(writes, pace)
        if seen.tree is not None:
            self._agreed.settle(seen.tree)
        if (note := self._agreed.take()) is not None:
            await self._session.run(lambda _: note())
        self._tell()

    def _tell(self) -> None:
        """Informs the brokers of Kafka beside this one, whose controller it is."""
        if paths.CONTROLLER in self._held:
            alive = [node for node in self._nodes if paths.broker_path(node.id) in self._held]
            own = [_told(node, self._end_points(node)) for node in alive]
            known = [one for one in own if one is not None]
            self.neighbours.tell((self._controller, self._controller_epoch), known)

    async def _advance(self, next_id: int) -> None:
        """Leaves out the producer ids that a broker of Kafka has taken."""
        if next_id > max(self._image.next_producer_id, self._reserved):
            node, epoch = self._nodes.first.id, self._metadata.broker_epoch
            await self._metadata.submit(partial(self._metadata.controller.advance_producer_ids, node, epoch, next_id))

    @property
    def is_controller(self) -> bool:
        return paths.CONTROLLER in self._held

    async def allocate_producer_ids(self, node_id: int, epoch: int) -> tuple[int, int]:
        """Gives a block of producer ids to a broker of Kafka; returns the first one and the size. ZooKeeper has been
        told then. Raises ApiError, as the controller of Kafka 3.0 to 3.9.
        """
        if not self.is_controller:
            raise ApiError(Errors.NOT_CONTROLLER)
        self.neighbours.check_epoch(node_id, epoch)
        own, controller = self._nodes.first.id, self._metadata.controller
        allocate = partial(controller.allocate_producer_ids, own, self._metadata.broker_epoch)
        first, count = await self._metadata.submit(allocate)
        try:
            await self._session.run(partial(reserve_producer_ids, broker_id=own, next_id=first + count))
        except FAILURES as error:
            logger.warning("ZooKeeper is not told of producer ids from %d on: %r", first, error)
            raise ApiError(Errors.UNKNOWN_SERVER_ERROR) from None
        return first, count

    async def _reserve(self, is_new: bool) -> None:
        """Shows the producer ids that are given away, with which brokers of Kafka begin. Before 3.0 each broker
        has some from its start on.
        """
        next_id = self._image.next_producer_id or (PRODUCER_ID_BLOCK if self._release < (3, 0) else 0)
        if self._release >= PRODUCER_IDS_SINCE and (is_new or next_id != self._reserved):
            await self._session.run(partial(reserve_producer_ids, broker_id=self._nodes.first.id, next_id=next_id))
            self._reserved = next_id

    async def _publish(self, writes: list[Write], pace: Pace) -> None:
        """Writes answers, and what has changed here."""
        pending = self._publisher.take()
        try:
            for one in self._publisher.writes(pending, self._controller_epoch):
                if one is not None:
                    writes.append(one)
                if pace.is_over():
                    await pace.rest()
            written = await self._session.run(partial(_write, note=self._agreed.take(), writes=writes))
        except BaseException as error:
            self._publisher.give_back(pending)
            self._publisher.forget()
            if not isinstance(error, Conflict):
                raise
            logger.info("ZooKeeper: %s; it is read again before it is written", error)
            self._again()
        else:
            self._publisher.confirm(written)

    # offsets that consumers keep there

    async def committed(self, group: str, wanted: list[tuple[str, int]]) -> list[tuple[int, int] | None]:
        """Returns the offset and the error of each partition; None where there is no offset."""
        if not paths.is_group(group):
            return [UNREADABLE] * len(wanted)
        try:
            return await self._session.run(partial(_offsets, group=group, wanted=wanted))
        except FAILURES as error:
            logger.warning("offsets of group %s cannot be read: %r", group, error)
            return [UNREADABLE] * len(wanted)

    async def commit(self, group: str, offsets: dict[tuple[str, int], int]) -> bool:
        """Writes offsets of a group there; returns whether they are written."""
        if not paths.is_group(group):
            return False
        writes: list[Write] = [
            Put(paths.offset_path(group, topic, index), b"%d" % offset) for (topic, index), offset in offsets.items()
        ]
        try:
            await self._session.run(partial(write_all, writes=writes))
        except FAILURES as error:
            logger.warning("offsets of group %s cannot be written: %r", group, error)
            return False
        return True


def _told(node: Node, end_points: Iterable[EndPoint]) -> ToldBroker | None:
    """Returns a node as a broker of Kafka hears of it; None if it has no listener without TLS and login."""
    plain = next((one for one in end_points if one.security_protocol == "PLAINTEXT"), None)
    return None if plain is None else ToldBroker(node.id, plain.host or "", plain.port)


def _write(client: KazooClient, note: Callable[[], None] | None, writes: Sequence[Write]) -> Written:
    """Makes durable what was agreed on, and what may be there from now on; then writes."""
    if note is not None:
        note()
    return write_all(client, writes)


def _cluster_id(client: KazooClient) -> str | None:
    if client.exists(paths.CLUSTER_ID) is None:
        return None
    try:
        return values.cluster_id_of(client.get(paths.CLUSTER_ID)[0])
    except Malformed as error:
        raise ZooKeeperError(f"{paths.CLUSTER_ID}: {error}") from None


def _offsets(client: KazooClient, group: str, wanted: list[tuple[str, int]]) -> list[tuple[int, int] | None]:
    found: list[tuple[int, int] | None] = []
    rest = iter(wanted)
    while some := list(islice(rest, PIPELINED)):
        for waiting in [client.get_async(paths.offset_path(group, *one)) for one in some]:
            try:
                found.append((values.offset_of(waiting.get()[0]), int(Errors.NONE)))
            except NoNodeError:
                found.append(None)
            except Malformed:
                found.append(UNREADABLE)
    return found
