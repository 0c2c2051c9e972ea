"""Clients of a simulated cluster, which know who leads from metadata, hints and errors, as real ones do."""

from __future__ import annotations

import random
from typing import Any, Protocol

from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.errors import Errors

from ..support.ask import batch
from .cluster_network import Call, Network
from .cluster_truth import Truth

PATIENCE_MS = 3000  # before a client asks again
PRODUCE_TIMEOUT_MS = 2000
MOVED = {
    int(e)
    for e in (
        Errors.NOT_LEADER_OR_FOLLOWER,
        Errors.FENCED_LEADER_EPOCH,
        Errors.UNKNOWN_LEADER_EPOCH,
        Errors.LEADER_NOT_AVAILABLE,
        Errors.KAFKA_STORAGE_ERROR,
    )
}
LATER = {
    int(e)
    for e in (
        Errors.NOT_ENOUGH_REPLICAS,
        Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        Errors.REQUEST_TIMED_OUT,
        Errors.COORDINATOR_LOAD_IN_PROGRESS,
        Errors.CONCURRENT_TRANSACTIONS,
    )
}
LOST = {int(e) for e in (Errors.OUT_OF_ORDER_SEQUENCE_NUMBER, Errors.UNKNOWN_PRODUCER_ID)}
AWAY = {int(e) for e in (Errors.NOT_COORDINATOR, Errors.COORDINATOR_NOT_AVAILABLE)}
GONE = {int(Errors.UNKNOWN_TOPIC_OR_PARTITION), int(Errors.UNKNOWN_TOPIC_ID)}


class History(Protocol):
    """What clients know of the history that they are part of."""

    chance: random.Random
    network: Network
    truth: Truth
    trouble: bool
    is_any_cut: bool

    @property
    def now_ms(self) -> int: ...


class Client:
    """One request at a time, which is asked again when nothing comes. `find` and `ask` return a call; `took` gets the
    reply.
    """

    def __init__(self, sim: History) -> None:
        self.sim = sim
        self.call: Call | None = None
        self.finds = False  # the call is about where to ask
        self.is_lost = True  # it has to find out where to ask
        self.since_ms = 0
        self.is_done = False

    def step(self) -> None:
        call, sim = self.call, self.sim
        if call is not None:
            reply = call.reply()
            if reply is not None:
                self.call = None
                if self.finds:
                    self.found(reply)
                else:
                    self.took(reply)
            elif call.is_lost or sim.now_ms - self.since_ms > PATIENCE_MS:
                call.is_cut = True
                self.call, self.is_lost = None, True
                self.failed()
            else:
                return
        if not self.is_done:
            self.finds, self.since_ms = self.is_lost, sim.now_ms
            self.call = self.find() if self.is_lost else self.ask()
            if self.call is not None and sim.trouble and sim.chance.random() < 0.01:
                self.call.is_cut = True  # the request has arrived, and nothing comes back

    def anyone(self, name: str, version: int, message: Any) -> Call | None:
        """Asks any node that accepts connections."""
        up = self.sim.network.up()
        return self.sim.network.send(self.sim.chance.choice(up), name, version, message) if up else None

    def find(self) -> Call | None:
        raise NotImplementedError

    def found(self, reply: Any) -> None:
        raise NotImplementedError

    def ask(self) -> Call | None:
        raise NotImplementedError

    def took(self, reply: Any) -> None:
        raise NotImplementedError

    def failed(self) -> None:
        """No reply came."""


class OfPartition(Client):
    """A client of one partition, which follows its leader."""

    def __init__(self, sim: History, topic: str, index: int) -> None:
        super().__init__(sim)
        self.topic = topic
        self.index = index
        self.topic_id = b""
        self.leader = self.epoch = -1

    def find(self) -> Call | None:
        wanted = m.MetadataRequest.MetadataRequestTopic(name=self.topic)
        return self.anyone("Metadata", 12, m.MetadataRequest(topics=[wanted]))

    def found(self, reply: Any) -> None:
        (topic,) = reply.topics
        if topic.error_code in GONE or (self.topic_id and self.topic_id != topic.topic_id):
            self.is_done = True
            return
        self.topic_id = topic.topic_id
        for one in topic.partitions:
            if one.partition_index == self.index and one.error_code == 0:
                self.heard(one.leader_id, one.leader_epoch)

    def heard(self, leader: int, epoch: int) -> None:
        """Takes over who leads, unless that is older than what is known: a node that is cut off may have said it."""
        if epoch < self.epoch:
            assert self.sim.is_any_cut, f"metadata of {self.topic}-{self.index} goes back to epoch {epoch}"
            return
        self.leader, self.epoch, self.is_lost = leader, epoch, leader < 0

    def refused(self, part: Any) -> None:
        """The node does not lead, or the epoch is another one; the reply may name the leader (KIP-951)."""
        self.is_lost = True
        hint = part.current_leader
        if hint.leader_id >= 0 and hint.leader_epoch > self.epoch:
            self.heard(hint.leader_id, hint.leader_epoch)


class Producer(OfPartition):
    """Sends values, the next one when the last was acknowledged. `acked`: offsets by value."""

    def __init__(self, sim: History, topic: str, index: int, number: int, acks: int, is_idempotent: bool) -> None:
        super().__init__(sim, topic, index)
        self.number = number
        self.acks = acks
        self.is_idempotent = is_idempotent
        self.id = -1
        self.sequence = self.count = 0
        self.size = 1
        self.acked: dict[bytes, int] = {}
        self.losses = 0  # unclean elections that it knows of
        self.wants_id = is_idempotent
        self.is_finishing = False  # it sends nothing new

    def ask(self) -> Call | None:
        if self.wants_id:
            return self.anyone("InitProducerId", 4, m.InitProducerIdRequest(transactional_id=None))
        if self.size == 0:
            if self.is_finishing:
                self.is_done = True
                return None
            self.size = self.sim.chance.choice((1, 1, 1, 3))
        if self.id >= 0:
            data = batch(*self.values(), producer_id=self.id, producer_epoch=0, base_sequence=self.sequence)
        else:
            data = batch(*self.values())
        r = m.ProduceRequest
        topic = r.TopicProduceData(
            name=self.topic, partition_data=[r.PartitionProduceData(index=self.index, records=data)]
        )
        message = r(acks=self.acks, timeout_ms=PRODUCE_TIMEOUT_MS, topic_data=[topic])
        return self.sim.network.send(self.leader, "Produce", 10, message)

    def values(self) -> list[bytes]:
        return [b"%d.%d" % (self.number, self.count + n) for n in range(self.size)]

    def failed(self) -> None:
        if not self.is_idempotent:
            self._next()  # it cannot know, and does not send it twice

    def _next(self) -> None:
        self.count += self.size
        self.sequence += self.size
        self.size = 0

    def took(self, reply: Any) -> None:
        if isinstance(reply, m.InitProducerIdResponse):
            if reply.error_code == 0:
                self.id, self.sequence, self.wants_id = reply.producer_id, 0, False
            return
        part = reply.responses[0].partition_responses[0]
        code = part.error_code
        if code in MOVED:
            self.refused(part)
        elif code in GONE:
            self.is_done = True
        elif code in LOST:
            self._lost()
        elif code not in LATER:
            assert code in (0, Errors.DUPLICATE_SEQUENCE_NUMBER), f"producer {self.number} was told {code}"
            offset = part.base_offset if code == 0 else -1
            for n, value in enumerate(self.values()):
                self.acked[value] = offset + n if offset >= 0 else -1
            self._next()
        if code and code in LATER and not self.is_idempotent:
            self._next()

    def _lost(self) -> None:
        """Another log has been elected: the producer begins again, and what it was sending may be there or not."""
        told = self.sim.truth.partitions.get((self.topic_id, self.index))
        losses = told.losses if told is not None else self.losses + 1
        assert losses > self.losses, f"producer {self.number} was told of a gap without an unclean election"
        self.losses, self.wants_id = losses, True
        self._next()


class Consumer(OfPartition):
    """Fetches a partition with its epochs, and goes back where logs diverge. `rows`: what it has, by offset."""

    def __init__(self, sim: History, topic: str, index: int, has_session: bool) -> None:
        super().__init__(sim, topic, index)
        self.has_session = has_session
        self.rows: list[tuple[int, bytes]] = []
        self.session = self.session_epoch = 0
        self.session_at = -1  # the node whose session it is
        self.sent: tuple[int, int, int] | None = None  # what the session knows

    def heard(self, leader: int, epoch: int) -> None:
        super().heard(leader, epoch)
        if leader != self.session_at:
            self._forget()

    def _forget(self) -> None:
        self.session = self.session_epoch = 0
        self.sent = None

    def failed(self) -> None:
        self._forget()

    def ask(self) -> Call | None:
        chance, r = self.sim.chance, m.FetchRequest
        last_epoch = self.rows[-1][0] if self.rows else -1
        at = (len(self.rows), self.epoch, last_epoch)
        part = r.FetchPartition(
            partition=self.index,
            fetch_offset=at[0],
            current_leader_epoch=at[1],
            last_fetched_epoch=at[2],
            partition_max_bytes=chance.choice((100, 1 << 20)),
        )
        message = r(max_wait_ms=chance.choice((0, 500)), min_bytes=1, max_bytes=1 << 20)
        if at != self.sent:
            message.topics = [r.FetchTopic(topic=self.topic, partitions=[part])]
        message.session_id = self.session
        message.session_epoch = self.session_epoch if self.has_session else -1
        self.sent, self.session_at = at if self.has_session else None, self.leader
        return self.sim.network.send(self.leader, "Fetch", 12, message)

    def took(self, reply: Any) -> None:
        if reply.error_code:
            code = Errors(reply.error_code).name
            assert code in ("FETCH_SESSION_ID_NOT_FOUND", "INVALID_FETCH_SESSION_EPOCH"), code
            return self._forget()
        if self.has_session:
            self.session, self.session_epoch = reply.session_id, self.session_epoch + 1
            if not self.session:
                self._forget()
        for topic in reply.responses:
            for part in topic.partitions:
                self._fetched(part)

    def _fetched(self, part: Any) -> None:
        code = part.error_code
        if code in MOVED:
            self._forget()
            return self.refused(part)
        if code in GONE:
            self.is_done = True
            return
        assert code in (0, Errors.OFFSET_OUT_OF_RANGE), f"a consumer was told {code}"
        if code:
            del self.rows[:]  # it begins again
            return
        diverging = part.diverging_epoch
        if diverging.epoch >= 0 or diverging.end_offset >= 0:
            kept = [row for row in self.rows[: diverging.end_offset] if row[0] <= diverging.epoch]
            assert len(kept) < len(self.rows), f"a consumer was told of a divergence at its end: {diverging}"
            self.rows = kept
            return
        for at in records.batches(part.records or b""):
            for record in records.decode(part.records, at):
                if record.offset == len(self.rows):
                    value = b"" if at.header.is_control else record.value or b""
                    self.rows.append((at.header.partition_leader_epoch, value))
                assert record.offset < len(self.rows), f"a consumer of {self.topic}-{self.index} was given a gap"


class Committer(Client):
    """Commits the offsets of a group without members, each higher than the last, and reads them back."""

    def __init__(self, sim: History, group: str) -> None:
        super().__init__(sim)
        self.group = group
        self.node = -1
        self.sent = self.acked = -1
        self.losses = 0
        self.reads = False
        self.is_stale = False  # whether the coordinator that is asked may have been left behind

    def find(self) -> Call | None:
        return self.anyone("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=[self.group]))

    def found(self, reply: Any) -> None:
        (one,) = reply.coordinators
        self.is_lost = one.error_code != 0
        self.node = one.node_id

    def ask(self) -> Call | None:
        self.reads = self.sim.chance.random() < 0.4
        self.is_stale = self._is_cut()
        if self.reads:
            f = m.OffsetFetchRequest
            wanted = f.OffsetFetchRequestGroup(
                group_id=self.group, topics=[f.OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
            )
            return self.sim.network.send(self.node, "OffsetFetch", 8, f(groups=[wanted]))
        self.sent += 1
        c = m.OffsetCommitRequest
        part = c.OffsetCommitRequestPartition(partition_index=0, committed_offset=self.sent)
        topics = [c.OffsetCommitRequestTopic(name="t", partitions=[part])]
        message = c(group_id=self.group, generation_id_or_member_epoch=-1, topics=topics)
        return self.sim.network.send(self.node, "OffsetCommit", 8, message)

    def took(self, reply: Any) -> None:
        if self.reads:
            (group,) = reply.groups
            code = group.error_code or group.topics[0].partitions[0].error_code
            if code == 0:
                self._read(group.topics[0].partitions[0].committed_offset)
        else:
            code = reply.topics[0].partitions[0].error_code
            if code == 0:
                self.acked = self.sent
        self.is_lost = code in AWAY
        assert code == 0 or code in AWAY or code in LATER, f"group {self.group} was told {code}"

    def _is_cut(self) -> bool:
        node = self.sim.truth.world.broker.nodes.by_id.get(self.node)
        return node is not None and node.is_cut

    def _read(self, offset: int) -> None:
        sim = self.sim
        losses = sim.truth.losses_of_offsets()
        if losses != self.losses:
            self.losses, self.acked = losses, -1
        least = -1 if self.is_stale or self._is_cut() else self.acked
        assert least <= offset <= self.sent, (
            f"group {self.group} is at {offset}; {self.acked} was acknowledged, and {self.sent} sent last"
        )
