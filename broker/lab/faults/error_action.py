"""Errors in replies, where the APIs declare that they stand (`error_places`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

from ....protocol import messages
from ....protocol.errors import CODES, ApiError, Errors
from ....protocol.structs import Struct
from ...error_places import Place, place_of
from ...error_replies import put_error, take_out
from ...replies import CLOSE, NO_REPLY, Silence
from ...unsupported_version import RESPONSE, Listed, unsupported_version
from ..damage import release_missing
from ..seam import Exchange, Outcome, Outgoing
from ..shapes import Invalid, Size
from .action import Action, Hit
from .content_actions import METADATA
from .matching import FETCH, Matcher

PRODUCE = 0
NUMBER = re.compile(r"-?\d{1,5}", re.ASCII)
CODE_MAX = 0x7FFF  # error codes have 16 bits


@dataclass(frozen=True)
class Fail(Action):
    """An error in the reply, in the elements that the rule is for. At `request`, these elements are not handled, and
    the others are; at `reply`, all are handled, and the client gets the error nevertheless. Fetch and Metadata, which
    need not name what they ask for, always get it with the reply. ApiVersions gets UNSUPPORTED_VERSION as from a broker
    that lacks the version: in version 0, with the versions of ApiVersions that are lower.
    """

    error: Annotated[str | int, "The name of the error, or its number: `NOT_LEADER_OR_FOLLOWER`, `6`.", Size(1, 100)]
    kind: Literal["error"] = "error"
    message: Annotated[str | None, "The error message, where the reply has room for one.", Size(0, 1000)] = None
    at: Literal["request", "reply"] = "request"

    def __post_init__(self) -> None:
        if (self.code <= 0 and self.code != Errors.UNKNOWN_SERVER_ERROR) or self.code > CODE_MAX:
            raise Invalid("error", f"is no error: {self.error}")

    @cached_property
    def code(self) -> int:
        text = str(self.error).strip().upper()
        if NUMBER.fullmatch(text):
            return int(text)
        if text not in CODES:
            from difflib import get_close_matches

            close = [name for name in CODES if name.startswith(text)] or get_close_matches(text, CODES, 1)
            raise Invalid("error", f"unknown error {self.error}{f' (did you mean {close[0]}?)' if close else ''}")
        return CODES[text]

    @property
    def failure(self) -> ApiError:
        return ApiError(self.code, self.message)

    def place(self, exchange: Exchange) -> Place | None:
        return place_of(exchange.context.api, exchange.context.version, self.code)

    def by_reply(self, key: int) -> bool:
        return self.at == "reply" or key in (FETCH, METADATA)

    def keeps(self, key: int) -> bool:
        return self.by_reply(key)

    def arrived(self, hit: Hit) -> Outcome | None:
        context, place, request = hit.exchange.context, self.place(hit.exchange), hit.exchange.request
        if place is None:
            return None
        taken = None
        if place.is_requested:
            taken = take_out(context.api, context.version, request, self.failure, hit.matcher.where, place)
        if taken is None or not taken.count:  # the request does not name the elements
            hit.exchange.keep()
            hit.puts = True
            return None
        if not taken.is_all:
            hit.complete = taken.complete
            return None
        if context.api.key == PRODUCE and getattr(request, "acks", -1) == 0:
            return CLOSE
        empty: Struct = getattr(messages, context.api.response)()
        return taken.complete(empty)

    def elements(self, matcher: Matcher, exchange: Exchange, message: Struct) -> int:
        """Counts the chosen elements of a reply."""
        place, count = self.place(exchange), 0
        if place is None:
            return 0

        def counted(roles: Mapping[str, object]) -> bool:
            nonlocal count
            count += matcher.replied(roles, exchange)
            return False

        context = exchange.context
        put_error(context.api, context.version, exchange.request, message, self.failure, counted, place)
        return count or len(matcher.fetched(exchange.context, exchange.request))

    def answered(self, hit: Hit, outcome: Struct | Silence) -> Outcome | None:
        if outcome is NO_REPLY:
            return CLOSE if self.by_reply(hit.exchange.context.api.key) or hit.complete is not None else None
        if not isinstance(outcome, Struct):
            return None
        if hit.complete is not None:
            return hit.complete(outcome)
        context, place = hit.exchange.context, self.place(hit.exchange)
        if place is None or not (hit.puts or self.by_reply(context.api.key)):
            return None
        request, where = hit.exchange.request, hit.matcher.where
        with release_missing(outcome):
            put = put_error(context.api, context.version, request, outcome, self.failure, where, place)
        if not put.count and isinstance(outcome, messages.FetchResponse) and place.levels:
            self._add(hit, outcome)
        return put.reply

    def encoded(self, hit: Hit, outgoing: Outgoing) -> float:
        context = hit.exchange.context
        is_downgrade = context.api.response == RESPONSE and self.code == Errors.UNSUPPORTED_VERSION
        if is_downgrade and context.version > 0 and outgoing.reply is not None:
            outgoing.reply.release()
            older = Listed(api_key=context.api.key, min_version=0, max_version=context.version - 1)
            outgoing.reply = unsupported_version(context.correlation_id, [older])
        return 0.0

    def _add(self, hit: Hit, reply: messages.FetchResponse) -> None:
        """Adds partitions of a fetch session that have nothing else to say (KIP-227)."""
        r = messages.FetchResponse
        for topic, topic_id, partition in hit.matcher.fetched(hit.exchange.context, hit.exchange.request):
            data = r.PartitionData(
                partition_index=partition, error_code=self.code, high_watermark=-1, last_stable_offset=-1, records=b""
            )
            reply.responses.append(r.FetchableTopicResponse(topic=topic, topic_id=topic_id, partitions=[data]))

    @property
    def text(self) -> str:
        return f"error {self.error} at the {self.at}"
