"""The fetch and multi-fetch requests of before 0.8, which a broker that emulates 0.8.2 takes with
`ottla.emulate.oldest.fetch`. They come over the same connections as those of 0.8: where these have version 0, they have
the length of a topic or a number of fetches, which is never zero.

Each fetch is answered by the handler of Fetch 0, one after the other, without waiting for messages. A multi-fetch has
an error code of its own, which is zero, and one for each fetch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from ...protocol import messages
from ...protocol.errors import Errors, MalformedMessage
from ...protocol.message_set_send import (
    MULTI_FETCH,
    OldestFetch,
    message_set_send,
    multi_message_set_send,
    parse_fetches,
)
from ..net.api import Api
from ..net.context import Context
from ..net.dispatch import Refused
from .outcomes import outcome_of

REPLY_BYTES_MAX = 8 << 20
STEP_FETCHES = 8
CODES = (Errors.NONE, Errors.OFFSET_OUT_OF_RANGE, Errors.CORRUPT_MESSAGE, Errors.UNKNOWN_TOPIC_OR_PARTITION)
"""The errors that there were: a wrong partition is today's UNKNOWN_TOPIC_OR_PARTITION. Others are -1, unknown."""
Call = Callable[[Api, Context, messages.FetchRequest], object]


def wanted_of(frame: memoryview) -> list[OldestFetch]:
    """Returns the fetches of a request. Raises Refused, which closes the connection."""
    try:
        return parse_fetches(frame)
    except MalformedMessage as error:
        raise Refused(f"a fetch of before 0.8: {error}") from None


async def answered(context: Context, call: Call, kind: int, wanted: list[OldestFetch]) -> bytes:
    """Returns the bytes of the reply. `call`: serves a Fetch."""
    sends, left = [], REPLY_BYTES_MAX
    for number, one in enumerate(wanted, 1):
        sends.append(await _answer(context, call, one, left))
        left -= len(sends[-1])
        if number % STEP_FETCHES == 0:
            await context.turn.next()
    return multi_message_set_send(sends) if kind == MULTI_FETCH else sends[0]


async def _answer(context: Context, call: Call, wanted: OldestFetch, left: int) -> bytes:
    r = messages.FetchRequest
    part = r.FetchPartition(
        partition=wanted.partition,
        fetch_offset=wanted.offset,
        partition_max_bytes=max(0, min(wanted.bytes_max, left)),
    )
    request = r(replica_id=-1, max_wait_ms=0, topics=[r.FetchTopic(topic=wanted.topic, partitions=[part])])
    response = cast(messages.FetchResponse, await outcome_of(call(context.api, context, request)))
    found = response.responses[0].partitions[0]
    code = found.error_code if found.error_code in CODES else int(Errors.UNKNOWN_SERVER_ERROR)
    return message_set_send(code, b"" if code else bytes(found.records or b""))
