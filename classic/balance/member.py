"""One consumer of a group: its registration in five steps, and its rebalance in nine.

What differs from Kafka 0.8.2, whose consumers it shares groups with:

- a partition is claimed before its offset is read. The other order lets the owner before commit in between, and what it
  handed out comes twice;
- an owner's node is removed only if this session made it, because after a lost connection it is not known who did;
- it does not give up after `rebalance.max.retries`: partitions without an owner would wait for the next change.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...protocol.zookeeper_paths import (
    BROKER_IDS,
    BROKER_TOPICS,
    consumer_path,
    consumers_path,
    owner_path,
    topic_path,
)
from ...protocol.zookeeper_values import ConsumerRegistration, TopicAssignment
from .assignment import Subscription, TopicPartition, View
from .offsets import Storage
from .operations import Lost, Resume, SessionExpired, Steps, children, create, delete_own, get, suspend


class Member:
    """`is_due`: whether it has to rebalance. Whoever drives it calls `notified` when a watch fires, and drives one of
    its generators at a time.
    """

    def __init__(
        self,
        group: str,
        consumer: str,
        subscription: Subscription,
        storage: Storage,
        timestamp_ms: int,
        exclude_internal_topics: bool = True,
    ) -> None:
        self.group, self.consumer = group, consumer
        self.is_due = True  # the last step of the registration
        self.share: dict[TopicPartition, str] = {}
        self._subscription = subscription
        self._storage = storage
        self._timestamp_ms = timestamp_ms
        self._exclude_internal_topics = exclude_internal_topics
        self._is_registered = False
        self._claims: set[TopicPartition] = set()  # whose owner this consumer may be
        self._uncommitted: dict[TopicPartition, int] = {}  # what the streams had come to when they were stopped

    def notified(self) -> None:
        """A watch has fired: consumers, brokers, topics or partitions have changed, or the connection was lost."""
        self.is_due = True

    def expired(self) -> None:
        """The session is over. What this consumer owned may have other owners already."""
        self._is_registered = False
        self.is_due = True

    def rebalance(self) -> Steps[bool]:
        """Registers if need be, and rebalances. Gives whether it has its share; if not, it is due again, after a pause.

        Raises zookeeper_values.Malformed, ValueError and re.error for what others wrote.
        """
        self.is_due = False  # before anything is read: a later change makes it due
        done = False
        try:
            done = (yield from self._registered()) and (yield from self._rebalanced())
        except Lost:
            pass  # it is due again
        except SessionExpired:
            self._is_registered = False
        finally:
            self.is_due = self.is_due or not done
        return done

    def commit(self, offsets: Mapping[TopicPartition, int]) -> Steps[bool]:
        """Commits the offsets of streams that run; gives whether all are stored."""
        if not self._is_registered:
            return False
        try:
            return (yield from self._storage.commit({one: offsets[one] for one in offsets if one in self._claims}))
        except Lost:
            return False
        except SessionExpired:
            self.expired()
            return False

    def leave(self) -> Steps[bool]:
        """Stops the streams, commits and gives up what it owns. Gives whether that is done, else it is tried again. The
        session ends afterwards, and the registration with it.
        """
        try:
            return (yield from self._stopped()) and (yield from self._released())
        except Lost:
            return False
        except SessionExpired:
            return True

    def _registered(self) -> Steps[bool]:
        if not self._is_registered:
            yield from suspend()  # what it had come to in the session before is not its own to commit
            self._uncommitted.clear()
            value = self._subscription.registration(self._timestamp_ms).encode()
            self._is_registered = yield from create(consumer_path(self.group, self.consumer), value)
        return self._is_registered

    def _rebalanced(self) -> Steps[bool]:
        view = yield from self._seen()
        if view is None:
            return True  # there is no broker; the watch reports the next one
        if not ((yield from self._stopped()) and (yield from self._released())):
            return False
        self.share = view.share_of(self.consumer)
        if not (yield from self._claimed()):
            yield from self._released()
            return False
        offsets = yield from self._storage.fetch(self.share)
        if offsets is None:
            yield from self._released()
            return False
        yield Resume({one: (thread, offsets.get(one)) for one, thread in self.share.items()})
        return True

    def _seen(self) -> Steps[View | None]:
        """Reads what the shares depend on, and lets changes of it be told; None if there is no broker."""
        names = yield from children(consumers_path(self.group), watch=True)
        if not (yield from children(BROKER_IDS, watch=True)):
            return None
        consumers = {}
        for name in sorted(names):
            node = yield from get(consumer_path(self.group, name))
            if node is not None:
                consumers[name] = Subscription.of(ConsumerRegistration.decode(node.value))
        topics: list[str] = []
        if any(one.filter for one in consumers.values()):
            topics = yield from children(BROKER_TOPICS, watch=self._subscription.filter is not None)
        partitions = {}
        for topic in self._subscription.streams_of(topics, self._exclude_internal_topics):
            node = yield from get(topic_path(topic), watch=True)
            if node is not None:
                partitions[topic] = tuple(TopicAssignment.decode(node.value).partitions)
        existing = {*topics, *partitions}  # a topic that was made meanwhile is one of those that others may want
        return View(consumers, existing, partitions, self._exclude_internal_topics)

    def _stopped(self) -> Steps[bool]:
        """Stops the streams and commits what they have come to, while it is still its own."""
        self._uncommitted.update((yield from suspend()))
        if not (yield from self._storage.commit(self._uncommitted)):
            return False
        self._uncommitted.clear()
        return True

    def _released(self) -> Steps[bool]:
        """Step 8. Gives whether it is done."""
        for one in sorted(self._claims):
            yield from delete_own(owner_path(self.group, one.topic, one.partition))
            self._claims.discard(one)
        return True

    def _claimed(self) -> Steps[bool]:
        """Step 9. Gives False if a partition still has another owner."""
        for one, thread in sorted(self.share.items()):
            self._claims.add(one)  # before it is known, because the answer may get lost
            if not (yield from create(owner_path(self.group, one.topic, one.partition), thread.encode())):
                return False
        return True
