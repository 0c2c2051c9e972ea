"""Committed offsets: commits, fetches, deletions, expiry, and those of transactions that are not over yet.

Offsets are kept for each group by topic name and partition. A commit in a transaction is pending until its marker comes; then the
one with the highest offset in the log wins.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ...protocol.schema import NO_UUID
from ..format import CoordinatorRecord
from ..shard import Result
from ..timeline import Timeline, TimelineDict
from .classic import ClassicGroup, State
from .consumer import ConsumerGroup
from .environment import Client
from .format import COMMIT_MS, EXPIRE_MS, TOPIC_ID, Commit, Commits, Key, Stored, commit_of
from .joining import renew_session
from .members import Member

if TYPE_CHECKING:
    from .shard import GroupShard

NO_OFFSET = -1
NO_RETENTION = -1
NO_GENERATION = -1
NO_METADATA = {"", None}
GROUP_ID_NOT_FOUND_SINCE, TOPIC_IDS_SINCE = 9, 10  # OffsetCommit
TXN_GROUP_ID_NOT_FOUND_SINCE = STALE_EPOCH_SINCE = TXN_TOPIC_IDS_SINCE = 6  # TxnOffsetCommit
K = TypeVar("K")


class Offsets:
    """All committed offsets of a shard."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.by_group: dict[str, TimelineDict[Key, Stored]] = {}
        # by producer id, and in it by group, topic and partition
        self.pending: TimelineDict[tuple[int, str, Key], Stored] = TimelineDict(timeline)
        self.pending_counts: TimelineDict[tuple[str, Key], int] = TimelineDict(timeline)
        self.pending_groups: TimelineDict[str, int] = TimelineDict(timeline)
        self.count = 0

    def of(self, group_id: str) -> TimelineDict[Key, Stored]:
        found = self.by_group.get(group_id)
        if found is None:
            found = self.by_group[group_id] = TimelineDict(self.timeline)
        return found

    def has_pending(self, group_id: str) -> bool:
        return group_id in self.pending_groups

    def is_pending(self, group_id: str, key: Key) -> bool:
        return (group_id, key) in self.pending_counts

    # replay

    def replay(self, offset: int, producer_id: int, key: Any, value: Any) -> None:
        at = (key.topic, key.partition)
        if value is None:
            self.of(key.group).pop(at)
            for one in [k for k in self.pending if k[1] == key.group and k[2] == at]:
                self._drop_pending(one)
            return
        self.put(offset, producer_id, commit_of(key, value))

    def put(self, offset: int, producer_id: int, commit: Commit) -> None:
        group_id, at = commit.group, (commit.topic, commit.partition)
        if producer_id < 0:
            found = self.by_group.get(group_id)
            if found is None:
                found = self.of(group_id)
            before = found.get(at)
            if before is None or before[0] < offset:  # a log's plain commits are replayed last, see `live_entries`
                found[at] = commit.stored(offset)
            return
        self._put_pending(producer_id, group_id, at, commit.stored(offset))

    def _put_pending(self, producer_id: int, group_id: str, at: Key, stored: Stored) -> None:
        one = (producer_id, group_id, at)
        if one not in self.pending:
            self._count_pending(group_id, at, 1)
        self.pending[one] = stored

    def put_all(self, offset: int, producer_id: int, commits: Commits) -> None:
        """As `put`, for commits that are written now and not loaded, so that none can be older than what is there."""
        stored = commits.stored(offset)
        if producer_id < 0:
            return self.of(commits.group).update(stored)
        for at, one in stored.items():
            self._put_pending(producer_id, commits.group, at, one)

    def replay_marker(self, producer_id: int, committed: bool) -> None:
        for one in [k for k in self.pending if k[0] == producer_id]:
            found = self.pending[one]
            self._drop_pending(one)
            if committed:
                offsets = self.of(one[1])
                before = offsets.get(one[2])
                if before is None or found[0] > before[0]:
                    offsets[one[2]] = found

    def _count_pending(self, group_id: str, at: Key, change: int) -> None:
        _tally(self.pending_counts, (group_id, at), change)
        _tally(self.pending_groups, group_id, change)

    def _drop_pending(self, one: tuple[int, str, Key]) -> None:
        self.pending.pop(one)
        self._count_pending(one[1], one[2], -1)


def _tally(counts: TimelineDict[K, int], key: K, change: int) -> None:
    count = counts.get(key, 0) + change
    if count:
        counts[key] = count
    else:
        counts.pop(key)


# OffsetCommit


def commit(shard: GroupShard, client: Client, request: Any) -> Result:
    """Commits offsets, each partition for itself where only its metadata is too long. ApiError for the whole request."""
    check = _check_commit(shard, client.version, request)
    r = messages.OffsetCommitResponse
    expire = -1 if request.retention_time_ms == NO_RETENTION else shard.env.now_ms() + request.retention_time_ms
    reply = Answers(r(), r.OffsetCommitResponseTopic, r.OffsetCommitResponsePartition, client.version >= TOPIC_IDS_SINCE)
    return _committed(shard, request, check, reply, expire)


def commit_in_transaction(shard: GroupShard, client: Client, request: Any) -> Result:
    """As `commit`, with offsets that are pending until the transaction ends. ApiError."""
    r = messages.TxnOffsetCommitResponse
    try:
        check = _check_in_transaction(shard, client.version, request)
        reply = Answers(r(), r.TxnOffsetCommitResponseTopic, r.TxnOffsetCommitResponsePartition, client.version >= TXN_TOPIC_IDS_SINCE)
        return _committed(shard, request, check, reply)
    except ApiError as error:
        if error.code == Errors.STALE_MEMBER_EPOCH and client.version < STALE_EPOCH_SINCE:
            raise ApiError(Errors.ILLEGAL_GENERATION) from None
        raise


class Answers(NamedTuple):
    """The response to a request, what it has of a topic and of a partition, and whether topics have ids in its version, and no names."""

    response: Any
    topic: Any
    partition: Any
    by_id: bool

    def add(self, topic: Any, partitions: list[Any]) -> None:
        named = self.topic(topic_id=topic.topic_id) if self.by_id else self.topic(name=topic.name)
        named.partitions = partitions
        self.response.topics.append(named)


def _committed(shard: GroupShard, request: Any, check: Any, reply: Answers, expire: int = -1) -> Result:
    now = shard.env.now_ms()
    records: list[Any] = []
    for topic in request.topics:
        partitions = topic.partitions
        codes: dict[int, int] = {}
        if expire < 0 and {p.committed_metadata for p in partitions} <= NO_METADATA:
            records.append(_all_of(request.group_id, topic, check, now))
        else:
            codes = _each_of(shard, request.group_id, topic, check, now, expire, records)
        answers = [reply.partition(p.partition_index) for p in partitions]
        for place, code in codes.items():
            answers[place].error_code = code
        shard.counts["offset_commits"] += len(answers) - len(codes)
        reply.add(topic, answers)
    return Result(records, reply.response)


def _all_of(group_id: str, topic: Any, check: Any, now: int) -> Commits:
    """The commits of a topic that have neither metadata nor an expiry."""
    partitions = topic.partitions
    if check is not None:
        for p in partitions:
            check(topic.topic_id, p.partition_index)
    return Commits(
        group_id,
        topic.name,
        topic.topic_id,
        now,
        [p.partition_index for p in partitions],
        [p.committed_offset for p in partitions],
        [p.committed_leader_epoch for p in partitions],
    )


def _each_of(shard: GroupShard, group_id: str, topic: Any, check: Any, now: int, expire: int, records: list[Any]) -> dict[int, int]:
    """Adds the commits of a topic; returns the error codes of those that cannot be, by their places in the request."""
    limit = shard.env.config("offset.metadata.max.bytes")
    codes = {}
    for place, p in enumerate(topic.partitions):
        metadata = p.committed_metadata or ""
        if len(metadata) * 2 > limit and _java_length(metadata) > limit:
            codes[place] = int(Errors.OFFSET_METADATA_TOO_LARGE)
            continue
        if check is not None:
            check(topic.topic_id, p.partition_index)
        commit = Commit(group_id, topic.name, p.partition_index, p.committed_offset, p.committed_leader_epoch, metadata, now, topic.topic_id, expire)
        records.append(commit)
    return codes


def _java_length(text: str) -> int:
    """UTF-16 code units, which Kafka counts."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _check_commit(shard: GroupShard, version: int, request: Any) -> Any:
    """Whether the sender may commit; a check for each partition where that depends on it, or None. ApiError."""
    generation = request.generation_id_or_member_epoch
    group = shard.groups.get(request.group_id)
    if group is None:
        if generation < 0:
            group = shard.classic_group(request.group_id, create=True)
        elif version >= GROUP_ID_NOT_FOUND_SINCE:
            raise ApiError(Errors.GROUP_ID_NOT_FOUND)
        else:
            raise ApiError(Errors.ILLEGAL_GENERATION)
    if isinstance(group, ClassicGroup):
        group.check_commit(request.member_id, request.group_instance_id, generation)
        if group.state in (State.STABLE, State.PREPARING_REBALANCE):
            renew_session(shard, group, group.members[request.member_id])
        return None
    if not isinstance(group, ConsumerGroup):
        raise ApiError(Errors.GROUP_ID_NOT_FOUND, f"Group {group.id} is not a consumer group.")
    member = group.check_commit(request.member_id, generation, version)
    if member is None:
        return None
    return _check_of(group, member, generation)


def _check_in_transaction(shard: GroupShard, version: int, request: Any) -> Any:
    """As `_check_commit` for a commit in a transaction, whose sender need not be a member (KIP-447)."""
    generation = request.generation_id_or_member_epoch
    group = shard.groups.get(request.group_id)
    if group is None:
        if generation >= 0:
            raise ApiError(Errors.GROUP_ID_NOT_FOUND if version >= TXN_GROUP_ID_NOT_FOUND_SINCE else Errors.ILLEGAL_GENERATION)
        group = shard.classic_group(request.group_id, create=True)
    anonymous = generation < 0 and not request.member_id and request.group_instance_id is None
    if isinstance(group, ClassicGroup):
        if not anonymous or group.state is State.DEAD:
            group.check_commit(request.member_id, request.group_instance_id, generation, in_transaction=True)
        return None
    if not isinstance(group, ConsumerGroup):
        raise ApiError(Errors.GROUP_ID_NOT_FOUND, f"Group {group.id} is not a consumer group.")
    if anonymous and generation == NO_GENERATION:
        return None
    member = group.check_commit(request.member_id, generation)
    return None if member is None else _check_of(group, member, generation)


def _check_of(group: ConsumerGroup, member: Member, generation: int) -> Any:
    return lambda topic_id, partition: group.check_commit_of(member, generation, topic_id, partition)


# OffsetFetch


def fetch(shard: GroupShard, request: Any, as_of: int | None) -> Any:
    """What a group has committed: of the topics asked for, or of all. `as_of` None: the newest, and unstable offsets are told. ApiError."""
    r = messages.OffsetFetchResponse
    response = r.OffsetFetchResponseGroup(group_id=request.group_id)
    group = shard.groups.get(request.group_id, None, as_of)
    found = shard.offsets.by_group.get(request.group_id)
    if isinstance(group, ConsumerGroup):
        group.check_fetch(request.member_id, request.member_epoch, as_of)
    elif not isinstance(group, ClassicGroup) or group.state is State.DEAD:
        found = None
    if request.topics is None:
        for name, partitions in _by_topic(found, as_of).items():
            topic = r.OffsetFetchResponseTopics(name=name)
            topic.partitions = [_fetched(shard, request.group_id, name, p, c, as_of) for p, c in partitions.items()]
            response.topics.append(topic)
        return response
    for asked in request.topics:
        topic = r.OffsetFetchResponseTopics(name=asked.name, topic_id=asked.topic_id)
        for index in asked.partition_indexes:
            committed: Stored | None = found.get((asked.name, index), None, as_of) if found is not None else None
            if committed is not None and NO_UUID != committed[TOPIC_ID] != asked.topic_id != NO_UUID:
                committed = None
            topic.partitions.append(_fetched(shard, request.group_id, asked.name, index, committed, as_of))
        response.topics.append(topic)
    return response


def _by_topic(found: TimelineDict[Key, Stored] | None, as_of: int | None) -> dict[str, dict[int, Stored]]:
    topics: dict[str, dict[int, Stored]] = {}
    for (name, index), committed in found.items(as_of) if found is not None else ():
        topics.setdefault(name, {})[index] = committed
    return topics


def _fetched(shard: GroupShard, group_id: str, name: str, index: int, committed: Stored | None, as_of: int | None) -> Any:
    p = messages.OffsetFetchResponse.OffsetFetchResponsePartitions
    if as_of is None and shard.offsets.is_pending(group_id, (name, index)):
        unstable = int(Errors.UNSTABLE_OFFSET_COMMIT)
        return p(partition_index=index, error_code=unstable, committed_offset=NO_OFFSET, committed_leader_epoch=-1, metadata="")
    if committed is None:
        return p(partition_index=index, committed_offset=NO_OFFSET, committed_leader_epoch=-1, metadata="")
    _, offset, leader_epoch, metadata, *_ = committed
    return p(partition_index=index, committed_offset=offset, committed_leader_epoch=leader_epoch, metadata=metadata)


# deletion


def delete(shard: GroupShard, request: Any) -> Result:
    """OffsetDelete. ApiError for a group whose offsets may not be deleted."""
    group = shard.existing(request.group_id)
    if isinstance(group, ClassicGroup):
        if group.state is State.DEAD:
            raise ApiError(Errors.GROUP_ID_NOT_FOUND)
        if group.state is not State.EMPTY and not group.uses_consumer_protocol:
            raise ApiError(Errors.NON_EMPTY_GROUP)
    elif not isinstance(group, ConsumerGroup):
        raise ApiError(Errors.GROUP_ID_NOT_FOUND, f"Group {group.id} is not a consumer group.")
    r = messages.OffsetDeleteResponse
    response = r()
    records: list[CoordinatorRecord] = []
    found = shard.offsets.of(request.group_id)
    for topic in request.topics:
        out = r.OffsetDeleteResponseTopic(name=topic.name)
        subscribed = group.is_subscribed_to(topic.name)
        for p in topic.partitions:
            code = int(Errors.GROUP_SUBSCRIBED_TO_TOPIC) if subscribed else 0
            out.partitions.append(r.OffsetDeleteResponsePartition(partition_index=p.partition_index, error_code=code))
            key = (topic.name, p.partition_index)
            if not subscribed and (key in found or shard.offsets.is_pending(request.group_id, key)):
                records.append(tombstone(request.group_id, key))
        response.topics.append(out)
    shard.counts["offset_deletions"] += len(records)
    return Result(records, response)


def tombstone(group_id: str, key: Key) -> CoordinatorRecord:
    return messages.OffsetCommitKey(group=group_id, topic=key[0], partition=key[1]), None


def all_tombstones(shard: GroupShard, group_id: str) -> list[CoordinatorRecord]:
    """The records that end a group's offsets, pending ones too."""
    keys = dict.fromkeys(shard.offsets.of(group_id))
    keys |= {k[2]: None for k in shard.offsets.pending if k[1] == group_id}
    return [tombstone(group_id, key) for key in keys]


def of_deleted_topic(shard: GroupShard, name: str, topic_id: bytes) -> Result:
    """A topic is gone: so are its offsets, save those of another topic of the same name."""
    records = []
    for group_id, found in shard.offsets.by_group.items():
        for key, committed in found.items():
            if key[0] == name and committed[TOPIC_ID] in (NO_UUID, topic_id):
                records.append(tombstone(group_id, key))
    for (_, group_id, key), committed in shard.offsets.pending.items():
        if key[0] == name and committed[TOPIC_ID] in (NO_UUID, topic_id):
            records.append(tombstone(group_id, key))
    return Result(records, atomic=False)


# expiry


def expired(shard: GroupShard, group_id: str, records: list[CoordinatorRecord]) -> bool:
    """Adds tombstones for what has had its time; whether nothing of the group's offsets is left then."""
    found = shard.offsets.by_group.get(group_id)
    pending = shard.offsets.has_pending(group_id)
    if found is None or not len(found):
        return not pending
    group = shard.groups[group_id]
    base = _expires_from(group)
    if base is None:
        return False
    now, retention = shard.env.now_ms(), shard.env.config("offsets.retention.minutes") * 60_000
    before, kept = len(records), False
    for key, committed in _unsubscribed(group, found):
        due = committed[EXPIRE_MS] if committed[EXPIRE_MS] >= 0 else base(committed) + retention
        if now >= due and not shard.offsets.is_pending(group_id, key):
            records.append(tombstone(group_id, key))
        else:
            kept = True
    shard.counts["offset_expirations"] += len(records) - before
    kept = kept or any(group.is_subscribed_to(name) for name, _ in found)
    return not kept and not pending


def _unsubscribed(group: Any, found: TimelineDict[Key, Stored]) -> Iterator[tuple[Key, Stored]]:
    return ((key, committed) for key, committed in found.items() if not group.is_subscribed_to(key[0]))


def _expires_from(group: Any) -> Any:
    """From when on a group's offsets age: since it is empty, or since each was committed; None while nothing may expire (KIP-211)."""
    if isinstance(group, ConsumerGroup):
        return lambda committed: committed[COMMIT_MS]
    if group.protocol_type is None:
        return lambda committed: committed[COMMIT_MS]
    if group.state is State.EMPTY:
        since = group.state_since_ms
        return lambda committed: committed[COMMIT_MS] if since is None else since
    if group.uses_consumer_protocol and group.subscribed is not None and group.state is State.STABLE:
        return lambda committed: committed[COMMIT_MS]
    return None
