"""Subscriptions of consumer groups by regular expression, which are matched in another thread."""

from __future__ import annotations

from collections.abc import Iterable

from ...format import CoordinatorRecord
from ...shard import Result
from .. import regex
from ..environment import Client
from ..metadata_hash import metadata_hash
from ..state import ShardState
from .epoch import METADATA_REFRESH_MS, raise_epoch
from .group import ConsumerGroup, Count, Resolved
from .member import Member
from .records import regex_record, regex_tombstone

REGEX_REFRESH_MIN_MS = 10_000


def update_regexes(
    shard: ShardState,
    client: Client,
    group: ConsumerGroup,
    member: Member,
    changed: Member,
    records: list[CoordinatorRecord],
) -> tuple[bool, bool]:
    """Whether the member's expression changed, and whether its matches are known already. Raises ApiError for an
    invalid expression.
    """
    old, new = member.topic_regex, changed.topic_regex
    updated = resolved = refresh = False
    counts = group.regex_counts
    if old != new:
        updated = True
        if old and counts.get(old, 0) == 1:
            records.append(regex_tombstone(group.id, old))
        if new:
            if not counts.get(new):
                regex.check(new)
                refresh = True
            elif new in group.regexes:
                resolved = True
        elif old:
            resolved = True
    if refresh or len(counts):
        _maybe_resolve(shard, client, group, old, new, refresh)
    return updated, resolved


def _maybe_resolve(
    shard: ShardState,
    client: Client,
    group: ConsumerGroup,
    old: str | None,
    new: str | None,
    refresh: bool,
) -> None:
    """Starts to match the group's expressions with the topics, in another thread, if that is due."""
    now = shard.env.now_ms()
    found = next(iter(group.regexes.values()), None)
    last, version = (found.timestamp_ms, found.version) if found else (-(1 << 62), 0)
    if group.id in shard.resolving or now <= last + REGEX_REFRESH_MIN_MS:
        return
    wanted: dict[str, int] = dict(group.regex_counts.items())
    if old and old != new:
        wanted[old] = wanted.get(old, 1) - 1
    if new and old != new:
        wanted[new] = wanted.get(new, 0) + 1
    names = [r for r, count in wanted.items() if count > 0]
    refresh = refresh or len(names) != len(group.regexes) or version < shard.env.image.version_with_new_topics
    refresh = refresh or now > last + shard.env.config("group.consumer.regex.refresh.interval.ms")
    if not refresh or not names:
        return
    shard.resolving[group.id] = None
    shard.journal.note(shard.resolving.pop, group.id, None)
    image = shard.env.image
    version, work = image.version, regex.matcher(names, image.topic_names())

    def done(found: dict[str, frozenset[str]] | None, error: BaseException | None) -> None:
        shard.resolving.pop(group.id, None)
        if error is None and found is not None:
            allowed = _permitted(client, found.values())
            resolved = {name: Resolved(topics & allowed, version, now) for name, topics in found.items()}
            shard.write("update-regexes", lambda: regexes_resolved(shard, group.id, resolved))

    shard.journal.after(lambda: shard.env.background(work, done))


def _permitted(client: Client, matches: Iterable[frozenset[str]]) -> frozenset[str]:
    """Returns the topics among all matches of which the client may know: the client whose heartbeat made them be looked
    for. Each topic is asked for once.
    """
    topics = frozenset[str]().union(*matches)
    may_describe = client.may_describe
    return topics if may_describe is None else frozenset(topic for topic in sorted(topics) if may_describe(topic))


def regexes_resolved(shard: ShardState, group_id: str, found: dict[str, Resolved]) -> Result:
    """Writes the topics that match the expressions, and raises the group's epoch if its topics change."""
    group = shard.groups.get(group_id)
    if not isinstance(group, ConsumerGroup):
        return Result()
    records: list[CoordinatorRecord] = []
    used = group.regex_counts
    topics: dict[str, Count] = dict(group.topics.items())
    bump = False
    for expression, new in found.items():
        if not used.get(expression):
            continue
        before = group.regexes.get(expression)
        old_topics = before.topics if before else frozenset()
        if old_topics != new.topics:
            bump = True
            for name in sorted(old_topics - new.topics):
                topics[name] = Count(topics[name].by_name, topics[name].by_regex - 1)
            for name in sorted(new.topics - old_topics):
                count = topics.get(name, Count())
                topics[name] = Count(count.by_name, count.by_regex + 1)
        records.append(regex_record(group_id, expression, new))
    hash_now = metadata_hash((name for name, count in topics.items() if count != (0, 0)), shard.env.image)
    if bump or hash_now != group.metadata_hash:
        epoch = raise_epoch(shard, group, hash_now, records)
        group.refresh_at_ms = (shard.env.now_ms() + METADATA_REFRESH_MS, epoch)
    return Result(records)
