"""OffsetFetch: the committed offsets of one group."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping

from ....protocol import messages
from ....protocol.errors import Errors
from ....protocol.schema import NO_UUID
from ..format import TOPIC_ID, Key, Stored
from ..state import ShardState

NO_OFFSET = -1
STEP_PARTITIONS = 1000
Response = messages.OffsetFetchResponse.OffsetFetchResponseGroup
Request = messages.OffsetFetchRequest.OffsetFetchRequestGroup
Topic = messages.OffsetFetchResponse.OffsetFetchResponseTopics
Partition = messages.OffsetFetchResponse.OffsetFetchResponsePartitions
Work = Generator[None, None, Response]
"""It yields after each `STEP_PARTITIONS`."""


def fetch(shard: ShardState, request: Request, as_of: int | None) -> Response | Work:
    """Returns the committed offsets of a group, for the requested topics or for all; if they are many, the work that
    makes the reply of what is committed now. `as_of` None: the newest ones, including unstable offsets. Raises
    ApiError.
    """
    group_id = request.group_id
    group = shard.groups.get(group_id, None, as_of)
    offsets = None
    if group is not None and group.has_readable_offsets(request.member_id, request.member_epoch, as_of):
        offsets = shard.offsets.by_group.get(group_id)
    unstable = shard.offsets.pending_keys(group_id) if as_of is None else ()
    response = Response(group_id=group_id)
    if request.topics is None:
        every = offsets.at(as_of) if offsets is not None else {}
        if len(every) >= STEP_PARTITIONS:
            return _all(response, dict(every), frozenset(unstable))
        return _at_once(_all(response, every, unstable))
    if sum(len(topic.partition_indexes) for topic in request.topics) >= STEP_PARTITIONS:
        kept = dict(offsets.at(as_of)) if offsets is not None else {}
        return _asked(response, request.topics, kept.get, frozenset(unstable))
    committed = _nothing if offsets is None else lambda key: offsets.get(key, as_of)
    return _at_once(_asked(response, request.topics, committed, unstable))


def _nothing(key: Key) -> None:
    return None


def _at_once(work: Work) -> Response:
    """Returns the reply of work that takes less than a step."""
    try:
        next(work)
    except StopIteration as end:
        response: Response = end.value
        return response
    raise AssertionError("it takes more than a step")


def _all(response: Response, found: Mapping[Key, Stored], unstable: Collection[Key]) -> Work:
    topics: dict[str, list[Partition]] = {}
    for number, (key, committed) in enumerate(found.items(), 1):
        topics.setdefault(key[0], []).append(_fetched(key[1], committed, key in unstable))
        if number % STEP_PARTITIONS == 0:
            yield
    response.topics = [Topic(name=name, partitions=partitions) for name, partitions in topics.items()]
    return response


def _asked(
    response: Response,
    topics: Iterable[messages.OffsetFetchRequest.OffsetFetchRequestTopics],
    committed_at: Callable[[Key], Stored | None],
    unstable: Collection[Key],
) -> Work:
    left = STEP_PARTITIONS
    for asked in topics:
        name, topic_id = asked.name, asked.topic_id
        topic = Topic(name=name, topic_id=topic_id)
        partitions = topic.partitions
        response.topics.append(topic)
        for index in asked.partition_indexes:
            key = name, index
            committed = committed_at(key)
            if committed is not None and NO_UUID != committed[TOPIC_ID] != topic_id != NO_UUID:
                committed = None
            partitions.append(_fetched(index, committed, key in unstable))
            left -= 1
            if not left:
                left = STEP_PARTITIONS
                yield
    return response


def _fetched(index: int, committed: Stored | None, is_unstable: bool) -> Partition:
    if is_unstable:
        return Partition(
            partition_index=index,
            error_code=int(Errors.UNSTABLE_OFFSET_COMMIT),
            committed_offset=NO_OFFSET,
            committed_leader_epoch=-1,
            metadata="",
        )
    if committed is None:
        return Partition(partition_index=index, committed_offset=NO_OFFSET, committed_leader_epoch=-1, metadata="")
    _, offset, leader_epoch, metadata, *_ = committed
    return Partition(
        partition_index=index, committed_offset=offset, committed_leader_epoch=leader_epoch, metadata=metadata
    )
