"""The order of the partitions in a reply to Produce, if some of them are refused.

Kafka keeps what it answers in tables of Scala: those that it has tried to append to, those that the client may not use,
those that do not exist, and those whose records are no batch. It puts them together in this order, which holds for up
to four of them. More are in the order of a trie of hash codes. In a hash code there is the id of the topic, which is
random, or zero for a name without a topic.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ...coordinator.scala_tables import buckets_for, in_trie, partition_hash, place_in_table, trie_order
from ...protocol import messages
from ..net.context import Context

Topic = messages.ProduceResponse.TopicProduceResponse
Answer = messages.ProduceResponse.PartitionProduceResponse

# Kafka's tables of partitions, as they are put together
UNVERIFIED: Final = 0  # refused by the transaction coordinator
APPENDED: Final = 1  # or refused by the log
MISSING: Final = 2
INVALID: Final = 3
TABLES: Final = (UNVERIFIED, APPENDED, MISSING, INVALID)
SMALL = 4  # entries that an immutable map has without a trie
ID_BYTES = 16


class _Part(NamedTuple):
    topic: Topic
    answer: Answer
    table: int
    hash_code: int


def put_in_order(context: Context, response: messages.ProduceResponse, tables: dict[int, int]) -> None:
    """Puts the partitions of a reply into Kafka's order. `tables`: by `id()` of an answer, if it is not APPENDED."""
    parts = _parts(context, response.responses, tables)
    found = [part for table in TABLES for part in _in_table([part for part in parts if part.table == table])]
    response.responses = _arranged(found)


def add_refused(context: Context, response: messages.ProduceResponse, refused: list[Topic], tried: int) -> None:
    """Adds the partitions of topics that the client may not use, behind those that Kafka has tried to append to.
    `tried`: how many of those there are; they come first in the reply.
    """
    others = _parts(context, response.responses)
    first, last = others[:tried], others[tried:]
    if not any(part.answer.error_code for part in first):
        first = _in_table(first)  # if nothing is refused, they are in the order of the request
    response.responses = _arranged([*first, *_in_table(_parts(context, refused)), *last])


def _parts(context: Context, topics: list[Topic], tables: dict[int, int] | None = None) -> list[_Part]:
    tables = tables or {}
    return [
        _Part(topic, answer, tables.get(id(answer), APPENDED), hash_code + 31 * answer.index)
        for topic in topics
        for hash_code in [_hash_of(context, topic)]
        for answer in topic.partition_responses
    ]


def _arranged(found: list[_Part]) -> list[Topic]:
    """Returns the topics, each with its partitions, in this order if they are few."""
    if len(found) > SMALL:
        found = [found[at] for at in trie_order({at: in_trie(part.hash_code) for at, part in enumerate(found)})]
    for part in found:
        part.topic.partition_responses = []
    for part in found:
        part.topic.partition_responses.append(part.answer)
    return list({id(part.topic): part.topic for part in found}.values())


def _hash_of(context: Context, topic: Topic) -> int:
    """`TopicIdPartition.hashCode` of partition 0, before it is cut to 32 bits."""
    image, name, topic_id = context.broker.image, topic.name, bytes(topic.topic_id)
    if any(topic_id):
        name = image.topic_names.get(topic_id, name)
    elif name in image.topics:
        topic_id = image.topics[name].id
    high, low = (int.from_bytes(half, "big") for half in (topic_id[: ID_BYTES // 2], topic_id[ID_BYTES // 2 :]))
    of_id = (high ^ low) >> 32 ^ high ^ low
    return 31 * (31 + of_id) + partition_hash(name, 0)


def _in_table(parts: list[_Part]) -> list[_Part]:
    size = buckets_for(len(parts))
    return sorted(parts, key=lambda part: place_in_table(part.hash_code, size))
