"""What a queue promises, and its consumers as the simulator of share groups plays them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ottla.broker.peer import Peer
from ottla.coordinator.share.acknowledge_types import ACCEPT, GAP, REJECT, RELEASE, RENEW
from ottla.protocol import messages as m

from ..support.world import Answer, World

GROUP, TOPIC = "q", "t"


LIMIT = 4


LOCK_MS = 2000


Acks = list[tuple[int, int, int]]


@dataclass
class Queue:
    """What a queue promises. An offset whose last acknowledgement got no answer may or may not be done."""

    done: set[int] = field(default_factory=set)
    unsure: set[int] = field(default_factory=set)
    counts: dict[int, int] = field(default_factory=dict)  # deliveries under the present leader
    most: dict[int, int] = field(default_factory=dict)  # the greatest count that anybody was told
    held: dict[int, tuple[str, int]] = field(default_factory=dict)  # by whom, and at least until when
    unheard: int = 0  # answers that may have brought records, and that no member saw in time
    late: set[int] = field(default_factory=set)  # what came with answers that were too late to count
    heard_of: dict[int, int] = field(default_factory=dict)  # `unheard` at the offset's last delivery
    end: int = 0
    deleted: int = 0  # the log's start offset
    gone: int = 0  # what it was at most: a kill may bring records back, for groups that have not passed them
    leaders: int = 0

    def delivered(self, member: str, first: int, last: int, count: int, asked_ms: int, now_ms: int, slow: int) -> None:
        """`slow`: how many answers are awaited for so long that locks which came with them may be over."""
        for offset in range(first, last + 1):
            assert offset < self.end, f"{offset} was never produced"
            assert offset not in self.done, f"{offset} came back after its acknowledgement"
            holder, until = self.held.get(offset, ("", 0))
            assert holder == "" or until <= now_ms, f"{offset} came to {member} while {holder} holds it"
            assert 1 <= count <= LIMIT, f"{offset} is delivered for the {count}th time"
            if offset in self.counts:
                assert count > self.counts[offset], f"{offset} has count {count} after {self.counts[offset]}"
            assert count <= self.at_most(offset) + slow + 1, f"{offset} has count {count} after {self.most.get(offset)}"
            self.heard_of[offset] = self.unheard
            self.counts[offset] = count
            self.most[offset] = max(count, self.most.get(offset, 0))
            self.held[offset] = member, asked_ms + LOCK_MS
            self.unsure.discard(offset)

    def at_most(self, offset: int) -> int:
        """How often it can have been delivered, with the answers that no member saw."""
        return self.most.get(offset, 0) + self.unheard - self.heard_of.get(offset, 0)

    def acknowledging(self, member: str, acks: Acks, now_ms: int) -> tuple[bool, set[int]]:
        """A member says something, and what it gives back may go to others before it is answered.

        Whether it must be refused, and which offsets it holds for sure: what it says of others may be too late, and is
        passed over then.
        """
        wrong, sure = False, set[int]()
        for first, last, kind in acks:
            for offset in range(max(first, self.deleted), last + 1):
                holder, until = self.held.get(offset, ("", 0))
                wrong = wrong or (holder not in ("", member) and until > now_ms)
                if holder == member and until > now_ms:
                    sure.add(offset)
                if kind != RENEW and holder == member:
                    del self.held[offset]
        return wrong, sure

    def acknowledged(self, member: str, first: int, last: int, kind: int, asked_ms: int, sure: set[int]) -> None:
        """It was answered without an error."""
        for offset in range(max(first, self.deleted), last + 1):
            if kind == RENEW and self.held.get(offset, ("", 0))[0] in ("", member):
                self.held[offset] = member, asked_ms + LOCK_MS
            elif kind not in (RELEASE, RENEW):
                (self.done if offset in sure else self.unsure).add(offset)

    def maybe_acknowledged(self, first: int, last: int) -> None:
        for offset in range(first, last + 1):
            if offset not in self.done:
                self.unsure.add(offset)

    def left(self, member: str) -> None:
        self.held = {offset: who for offset, who in self.held.items() if who[0] != member}

    def new_leader(self) -> None:
        self.leaders += 1
        self.counts.clear()
        self.held.clear()


class History(Protocol):
    """What consumers know of the history that they are part of."""

    chance: random.Random
    world: World
    queue: Queue
    trouble: bool
    topic_id: bytes

    @property
    def now_ms(self) -> int: ...

    @property
    def members(self) -> Sequence[Member]: ...


class Member:
    """A consumer as the simulator plays it."""

    def __init__(self, sim: History, number: int) -> None:
        self.sim = sim
        self.id = f"m{number}"
        self.holds: Acks = []
        self.wrong = False  # what it said last must be refused
        self.sure: set[int] = set()  # what it held then
        self.begin()

    def begin(self) -> None:
        self.peer = Peer("PLAINTEXT", f"127.0.0.1:{self.sim.chance.randint(1, 60000)}")
        self.epoch = 0
        self.waiting: tuple[str, Answer, Acks, int] | None = None
        self.leader = 0  # of whom it was asked

    def lost(self, politely: bool) -> None:
        """The connection ends, or the session does."""
        sim = self.sim
        self.hear_out()
        sim.queue.unheard += self.waiting is not None
        if politely and self.epoch:
            self._send("ShareAcknowledge", -1, [])
        if self.waiting is not None and self.waiting[1].waiting is not None:
            self.waiting[1].waiting.cancel()
        sim.world.broker.turn.event(self.peer.lost)
        sim.queue.left(self.id)
        self.holds = []
        self.begin()

    def hear_out(self) -> None:
        """Takes an answer that is there; of one that will not come it is not known what became."""
        if self.waiting is None:
            return
        name, answer, acks, asked_ms = self.waiting
        if answer.done:
            self.waiting = None
            self._take(name, answer.reply, acks, asked_ms)
            return
        for first, last, _ in acks:
            self.sim.queue.maybe_acknowledged(first, last)

    def is_slow(self) -> bool:
        return self.waiting is not None and self.sim.now_ms >= self.waiting[3] + LOCK_MS

    def step(self) -> None:
        if self.waiting is not None:
            if self.waiting[1].done:
                self.hear_out()
            return
        dice = self.sim.chance.random()
        acks = self._decide() if self.epoch else []
        if self.epoch and acks and dice < 0.5:
            self._ask("ShareAcknowledge", acks)
        elif dice < 0.9 or not self.sim.trouble:
            self._ask("ShareFetch", acks)

    def _decide(self) -> Acks:
        """What is said of some of the records it believes to hold, and sometimes of others."""
        chance, acks = self.sim.chance, []
        if not self.sim.trouble:
            acks, self.holds = [(first, last, ACCEPT) for first, last, _ in self.holds], []
            return acks
        for _ in range(chance.randint(0, 3)):
            if not self.holds:
                break
            first, last, _ = self.holds.pop(chance.randrange(len(self.holds)))
            kind = chance.choices((ACCEPT, RELEASE, REJECT, GAP, RENEW), (6, 4, 1, 1, 1))[0]
            if last > first and chance.random() < 0.4:
                cut = chance.randint(first, last - 1)
                self.holds.append((cut + 1, last, 0))
                last = cut
            if kind == RENEW:
                self.holds.append((first, last, 0))
            acks.append((first, last, kind))
        if chance.random() < 0.05 and self.sim.queue.end:
            offset = chance.randrange(self.sim.queue.end)
            acks.append((offset, offset, ACCEPT))
        acks.sort()
        return [one for n, one in enumerate(acks) if n == 0 or one[0] > acks[n - 1][1]]

    def _send(self, name: str, epoch: int, acks: Acks) -> Answer:
        request = (self._fetch if name == "ShareFetch" else self._acknowledge)(epoch, acks)
        return self.sim.world.send(name, 2, request, self.peer)

    def _acknowledge(self, epoch: int, acks: Acks) -> Any:
        r = m.ShareAcknowledgeRequest
        rows = [r.AcknowledgementBatch(first_offset=a, last_offset=b, acknowledge_types=[kind]) for a, b, kind in acks]
        part = r.AcknowledgePartition(partition_index=0, acknowledgement_batches=rows)
        topics = [r.AcknowledgeTopic(topic_id=self.sim.topic_id, partitions=[part])]
        return r(group_id=GROUP, member_id=self.id, share_session_epoch=epoch, is_renew_ack=renews(acks), topics=topics)

    def _fetch(self, epoch: int, acks: Acks) -> Any:
        r, chance = m.ShareFetchRequest, self.sim.chance
        rows = [r.AcknowledgementBatch(first_offset=a, last_offset=b, acknowledge_types=[kind]) for a, b, kind in acks]
        topics = [
            r.FetchTopic(
                topic_id=self.sim.topic_id,
                partitions=[r.FetchPartition(partition_index=0, acknowledgement_batches=rows)],
            )
        ]
        request = r(
            group_id=GROUP, member_id=self.id, share_session_epoch=epoch, is_renew_ack=renews(acks), topics=topics
        )
        if not request.is_renew_ack:
            request.max_wait_ms, request.min_bytes = chance.choice((0, 50, 1000)), 1
            request.max_bytes, request.max_records = chance.choice((200, 1 << 20)), chance.choice((1, 3, 20))
            request.batch_size, request.share_acquire_mode = chance.choice((1, 4, 100)), chance.randint(0, 1)
        return request

    def _ask(self, name: str, acks: Acks) -> None:
        if name == "ShareAcknowledge" and not acks:
            return
        self.wrong, self.sure = self.sim.queue.acknowledging(self.id, acks, self.sim.now_ms)
        self.leader = self.sim.queue.leaders
        self.waiting = name, self._send(name, self.epoch, acks), acks, self.sim.now_ms

    def _take(self, name: str, reply: Any, acks: Acks, asked_ms: int) -> None:
        queue, now_ms = self.sim.queue, self.sim.now_ms
        if reply is None or reply.error_code:
            for first, last, _ in acks:
                queue.maybe_acknowledged(first, last)
            self.lost(politely=False)
            return
        self.epoch += 1
        parts = [p for t in reply.responses for p in t.partitions]
        codes = [p.acknowledge_error_code if name == "ShareFetch" else p.error_code for p in parts]
        for first, last, kind in acks:
            if codes and not any(codes):
                assert not self.wrong, f"{self.id} acknowledged what others hold: {acks}"
                if kind != RENEW or self.leader == queue.leaders:
                    queue.acknowledged(self.id, first, last, kind, asked_ms, self.sure)
            else:
                queue.maybe_acknowledged(first, last)
        if now_ms >= asked_ms + LOCK_MS or self.leader != queue.leaders:
            queue.unheard += 1
            late = [
                range(one.first_offset, one.last_offset + 1)
                for part in parts
                for one in getattr(part, "acquired_records", ())
            ]
            queue.late.update(offset for found in late for offset in found)
        elif name == "ShareFetch":
            slow = sum(one.is_slow() for one in self.sim.members)
            for part in parts:
                for one in part.acquired_records:
                    queue.delivered(
                        self.id, one.first_offset, one.last_offset, one.delivery_count, asked_ms, now_ms, slow
                    )
                    self.holds.append((one.first_offset, one.last_offset, 0))


def renews(acks: Acks) -> bool:
    return any(kind == RENEW for _, _, kind in acks)
