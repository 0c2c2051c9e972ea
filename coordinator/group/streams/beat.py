"""What a heartbeat of a streams group decides: the reply, and the internal topics that do not exist."""

from __future__ import annotations

from typing import NamedTuple

from ....protocol import messages
from .topology import InternalTopic


class Beat(NamedTuple):
    """The broker creates `missing` on behalf of the client, and adds to the reply what comes of that."""

    response: messages.StreamsGroupHeartbeatResponse
    missing: tuple[InternalTopic, ...] = ()
