"""Who consumes which partitions: steps 1 to 7 of the rebalance, as functions of what ZooKeeper says.

Kafka 0.8 sorts the partitions of a topic by their number, whatever broker leads them (`RangeAssignor`). What does not
divide goes to the first consumers, one partition each.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...protocol.zookeeper_values import STATIC, WHITE_LIST, ConsumerRegistration
from .filters import Blacklist, TopicFilter, Whitelist


class TopicPartition(NamedTuple):
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a consumer wants: streams by topic, or a filter with a number of streams."""

    streams: Mapping[str, int]
    filter: TopicFilter | None = None
    filter_streams: int = 0

    def registration(self, timestamp_ms: int) -> ConsumerRegistration:
        if self.filter is None:
            return ConsumerRegistration(dict(self.streams), STATIC, timestamp_ms)
        return ConsumerRegistration({self.filter.regex: self.filter_streams}, self.filter.pattern, timestamp_ms)

    @classmethod
    def of(cls, registration: ConsumerRegistration) -> Subscription:
        """Returns what a registered consumer wants. Raises ValueError, and re.error for a filter that is no regular
        expression.
        """
        if registration.pattern == STATIC:
            return cls(registration.subscription)
        if len(registration.subscription) != 1:
            raise ValueError("the registration of a filter has not one regular expression")
        ((regex, count),) = registration.subscription.items()
        made = Whitelist(regex) if registration.pattern == WHITE_LIST else Blacklist(regex)
        return cls({}, made, count)

    def streams_of(self, existing: Collection[str], exclude_internal_topics: bool) -> dict[str, int]:
        """Returns the number of streams by topic. `existing`: the topics that there are."""
        if self.filter is None:
            return dict(self.streams)
        allowed = [topic for topic in existing if self.filter.is_topic_allowed(topic, exclude_internal_topics)]
        return dict.fromkeys(allowed, self.filter_streams)


def thread_id(consumer: str, stream: int) -> str:
    """Returns the id of one of a consumer's streams, which is what the owner of a partition is called."""
    return f"{consumer}-{stream}"


def _as_java_sorts(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def range_assignment(partitions: Collection[int], threads: Collection[str]) -> dict[str, list[int]]:
    """Shares out the partitions of a topic among the threads that consume it: to thread number i of n, in their order,
    partitions i*N to (i+1)*N - 1 where N is their number divided by n, and one more to each of the first threads if
    that leaves some over.
    """
    if not threads:
        return {}
    of_each, more = divmod(len(partitions), len(threads))
    ordered, at = sorted(partitions), 0
    shares: dict[str, list[int]] = {}
    for index, thread in enumerate(sorted(threads, key=_as_java_sorts)):
        count = of_each + (index < more)
        shares[thread] = ordered[at : at + count]
        at += count
    return shares


@dataclass(frozen=True, slots=True)
class View:
    """What a consumer read: the group's consumers with what they want, and the partitions of topics."""

    consumers: Mapping[str, Subscription]
    topics: Collection[str]  # all that there are, if a consumer has a filter
    partitions: Mapping[str, Sequence[int]]
    exclude_internal_topics: bool = True

    def share_of(self, consumer: str) -> dict[TopicPartition, str]:
        """Returns the partitions of a consumer, with the id of the thread that gets each."""
        streams = {
            name: wanted.streams_of(self.topics, self.exclude_internal_topics)
            for name, wanted in self.consumers.items()
        }
        share: dict[TopicPartition, str] = {}
        for topic in sorted(streams.get(consumer, ())):
            threads = {
                thread_id(name, i): name for name, wanted in streams.items() for i in range(wanted.get(topic, 0))
            }
            for thread, partitions in range_assignment(self.partitions.get(topic, ()), threads).items():
                if threads[thread] == consumer:
                    share.update({TopicPartition(topic, partition): thread for partition in partitions})
        return share
