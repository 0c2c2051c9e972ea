"""Topics as a list: of each the sums over its partitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, TypedDict

from ..internal_topics import is_internal
from ..replica.partition import Partition
from .encode import Turns
from .lab import Lab
from .pages import Page
from .routes import route
from .shapes import Size

STEP_TOPICS = 256  # how many names are looked at in a turn of the loop


class TopicSumView(TypedDict):
    """A topic. `partitions`: their number; `offline` and `opening`: of how many the log is not open. `records`: how
    many offsets there are. `hidden`: how many are above the high watermark, `unstable`: how many above the last stable
    offset. `policy`: of the high watermark, null if it is not the same in all partitions. `end_offset_sum`: grows with
    each record.
    """

    topic: str
    topic_id: str
    internal: bool
    partitions: int
    offline: int
    opening: int
    records: int
    hidden: int
    unstable: int
    size_bytes: int
    end_offset_sum: int
    parked_produces: int
    waiting_fetches: int
    policy: str | None


class TopicSumsView(TypedDict):
    """Topics by name. `total`: how many there are of the wanted kind, in all pages. `next`: what `after` must be for
    the next page; null for the last one.
    """

    topics: Iterable[TopicSumView]
    total: int
    next: str | None


@dataclass(frozen=True)
class ListSums(Page):
    """Which topics to list."""

    name: Annotated[str | None, "Only topics whose name matches: `*` stands for anything.", Size(1, 249)] = None
    internal: Annotated[bool, "Whether internal topics are listed too."] = True


@route("GET /v1/topic-sums", example=ListSums(limit=100, name="o*"))
def topic_sums(lab: Lab, asked: ListSums) -> Turns[TopicSumsView]:
    """Lists topics, each with the sums over its partitions: records, bytes, what consumers do not see yet."""
    return _sums(lab, asked)


def _sums(lab: Lab, asked: ListSums) -> Turns[TopicSumsView]:
    found = []
    for number, name in enumerate(list(lab.broker.image.topics)):
        if number % STEP_TOPICS == STEP_TOPICS - 1:
            yield
        if (asked.internal or not is_internal(name)) and (asked.name is None or fnmatchcase(name, asked.name)):
            found.append(name)
    names, following = asked.of(found)

    def views() -> Iterator[TopicSumView]:
        for name in names:
            partitions = list(lab.broker.partitions.of_topic(name))
            if partitions:  # it may have been deleted meanwhile
                yield _sum(name, partitions)

    return {"topics": views(), "total": len(found), "next": following}


def _sum(name: str, partitions: list[Partition]) -> TopicSumView:
    policies = {str(one.follower.policy) for one in partitions}
    return {
        "topic": name,
        "topic_id": partitions[0].topic_id.hex(),
        "internal": is_internal(name),
        "partitions": len(partitions),
        "offline": sum(one.offline for one in partitions),
        "opening": sum(one.log is None and not one.offline for one in partitions),
        "records": sum(one.end_offset - one.start_offset for one in partitions),
        "hidden": sum(max(0, one.end_offset - one.high_watermark) for one in partitions),
        "unstable": sum(max(0, one.high_watermark - one.last_stable_offset) for one in partitions),
        "size_bytes": sum(one.log.size for one in partitions if one.log is not None),
        "end_offset_sum": sum(one.end_offset for one in partitions),
        "parked_produces": sum(len(one.parked) for one in partitions),
        "waiting_fetches": sum(len(one.waiters) for one in partitions),
        "policy": min(policies) if len(policies) == 1 else None,
    }
