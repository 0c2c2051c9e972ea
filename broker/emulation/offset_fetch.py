"""OffsetFetch of an emulated release: version 0 read offsets from ZooKeeper, which this broker does not have
(`offset_commit`).
"""

from __future__ import annotations

from collections.abc import Mapping

from ...protocol import messages
from ..net.api import Api, Handler
from ..net.context import Context
from .offset_commit import without_zookeeper
from .releases import Release


def adapted(handle: Handler, release: Release, served: Mapping[int, Api]) -> Handler:
    def emulated(context: Context, request: messages.OffsetFetchRequest) -> object:
        if context.version > 0:
            return handle(context, request)
        r, code = messages.OffsetFetchResponse, without_zookeeper(release)
        return r(
            topics=[
                r.OffsetFetchResponseTopic(
                    name=topic.name,
                    partitions=[
                        r.OffsetFetchResponsePartition(
                            partition_index=index, committed_offset=-1, metadata="", error_code=code
                        )
                        for index in topic.partition_indexes
                    ],
                )
                for topic in request.topics or ()
            ]
        )

    return emulated
