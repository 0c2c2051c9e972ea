"""OffsetCommit of an emulated release, versions 0 and 1.

Version 0 stored offsets in ZooKeeper. This broker has none, so each partition gets the error of a broker without it:
since 3.3 UNSUPPORTED_VERSION, as with KRaft; before, that of a broker that has lost its ZooKeeper. Version 1 is stored
like the later ones, with the time of the broker.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..net.api import Api, Handler
from ..net.context import Context
from .releases import Release

KRAFT_SINCE = (3, 3)


def without_zookeeper(release: Release) -> int:
    """Returns the error of requests that need ZooKeeper."""
    unknown = release.is_before(*KRAFT_SINCE)
    return int(Errors.UNKNOWN_SERVER_ERROR if unknown else Errors.UNSUPPORTED_VERSION)


def adapted(handle: Handler, release: Release, served: Mapping[int, Api]) -> Handler:
    def emulated(context: Context, request: messages.OffsetCommitRequest) -> object:
        if context.version == 0:
            raise ApiError(without_zookeeper(release))
        return handle(context, request)

    return emulated
