"""Requests of stories about offsets of groups."""

from __future__ import annotations

from typing import Any

from ottla.protocol import messages as m
from ottla.protocol.schema import NO_UUID

# offsets


def fetch_request(version: int, group: str, topics: Any, **more: Any) -> Any:
    r = m.OffsetFetchRequest
    if version < 8:
        request = r(group_id=group)
        request.topics = (
            None if topics is None else [r.OffsetFetchRequestTopic(name=n, partition_indexes=p) for n, _, p in topics]
        )
    else:
        g = r.OffsetFetchRequestGroup(
            group_id=group, member_id=more.pop("member_id", None), member_epoch=more.pop("member_epoch", -1)
        )
        if topics is None:
            g.topics = None
        else:
            g.topics = [
                r.OffsetFetchRequestTopics(
                    name="" if version >= 10 else n, topic_id=i if version >= 10 else NO_UUID, partition_indexes=p
                )
                for n, i, p in topics
            ]
        request = r(groups=[g])
    for name, value in more.items():
        setattr(request, name, value)
    return request
