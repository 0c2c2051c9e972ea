"""Refuses what no request can match: a rule that is never applied looks like a client that never errs."""

from __future__ import annotations

from collections.abc import Callable, Collection

from ....protocol.schema import Versions
from ..seam import MatchedApi
from ..shapes import Invalid
from .fields import GROUP, MEMBER, PARTITION, TOPIC, TRANSACTIONAL_ID
from .matching import Apis, Match, Matcher, apis_of

ROLES = {GROUP: "group", MEMBER: "member", TRANSACTIONAL_ID: "transactional id", TOPIC: "topic", PARTITION: "partition"}
ByReply = Callable[[int], bool]
"""Whether topic and partition are looked for in the replies of an API."""


def keys_of_requests(match: Match, server: Apis) -> tuple[int, ...] | None:
    """Returns the keys of the APIs of a match that looks at requests alone, None for all. Raises Invalid."""
    keys = apis_of(match, server)
    check_possible(match, keys, server, lambda key: False)
    return keys


def check_possible(match: Match, keys: Collection[int] | None, server: Apis, by_reply: ByReply) -> None:
    """Raises Invalid, with the key that is too much. `keys`: of the APIs that the match is for, None for all."""
    if match.nth is not None and match.every is not None and match.nth % match.every:
        raise Invalid("every", f"never chooses request {match.nth}, which is the only one that nth chooses")
    apis = [server.api(key) for key in (server.api_keys() if keys is None else keys)]
    if (versions := match.version_range) is not None:
        apis = _with_versions(versions, match.versions, apis)
    asked = [role for role in ROLES if getattr(match, role) is not None]
    for count in range(1, len(asked) + 1):
        some = Match(**{role: getattr(match, role) for role in asked[:count]})
        matcher = Matcher(some, lambda _: "")
        if not any(matcher.prepared(api, by_reply(api.key)) for api in apis):
            others = "".join(f" beside a {ROLES[role]}" for role in asked[: count - 1])
            raise Invalid(asked[count - 1], f"{_names(apis)} names no {ROLES[asked[count - 1]]}{others}")


def _with_versions(wanted: Versions, given: str | int | None, apis: list[MatchedApi]) -> list[MatchedApi]:
    """Returns the APIs that are served in one of these versions. `given`: how they were written."""
    found = [api for api in apis if wanted.low <= api.high and wanted.high >= api.low]
    if not found:
        served = ", ".join(f"{api.name} {api.low} to {api.high}" for api in apis[:3])
        more = ", ..." if apis[3:] else ""
        raise Invalid("versions", f"are served of no such API, found {given} ({served}{more})")
    return found


def _names(apis: list[MatchedApi]) -> str:
    return "none of these requests" if len(apis) > 3 else " or ".join(api.name for api in apis)
