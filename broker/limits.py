"""Limits against abuse: how much clients can make the broker hold, and do for one request.

Each limit is declared once. The table of limits in the documentation and the metrics are computed from the
declarations. Where a limit is reached, `Limits.reached` counts that and warns once in a while with the name of the
limit and the key that raises it; the client gets the error that the declaration names, or its connection is closed.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from ..protocol.errors import ApiError
from .sparse_log import SparseLog


class Limit(NamedTuple):
    """`name`: in metrics and logs. `keys`: the configuration keys that raise it; `bound` says what holds where there
    is no key, or besides it. `beyond`: what happens to a client that goes beyond it.
    """

    name: str
    what: str
    keys: tuple[str, ...]
    beyond: str
    bound: str = ""


CLOSED = "the connection is closed"
CONNECTIONS = Limit(
    "connections",
    "open connections",
    ("max.connections",),
    "the new connection is closed",
    "what the limit of open files allows",
)
CONNECTIONS_PER_IP = Limit(
    "connections-per-ip",
    "open connections of one address",
    ("ottla.connections.per.ip.max", "max.connections.per.ip", "max.connections.per.ip.overrides"),
    "the new connection is closed",
)
BUFFERED_BYTES = Limit(
    "buffered-bytes",
    "bytes of incomplete requests and of replies that are not read, over all connections",
    ("ottla.buffered.bytes.max",),
    "the connection that holds the most is closed",
)
REQUEST_BYTES = Limit(
    "request-bytes",
    "bytes of a request",
    ("ottla.frame.max.bytes", "socket.request.max.bytes"),
    CLOSED,
    "the second key is for requests with records",
)
REQUEST_ELEMENTS = Limit(
    "request-elements", "elements in the arrays of a request", (), CLOSED, "1,000 to 30,000, by API"
)
REPLY_BYTES = Limit("reply-bytes", "bytes of a reply without records", ("ottla.reply.max.bytes",), CLOSED)
DECOMPRESSED_BYTES = Limit(
    "decompressed-bytes",
    "bytes of a batch after decompression",
    ("max.decompressed.message.bytes",),
    "INVALID_RECORD",
    "also 32 times its size, or 32 MiB where that is more",
)
EXPRESSION = Limit(
    "regular-expression",
    "memory of the program of a regular expression",
    (),
    "INVALID_REGULAR_EXPRESSION",
    "512 KiB",
)
CREATED = Limit(
    "created-per-request",
    "topics and partitions that one request creates",
    (),
    "POLICY_VIOLATION",
    "10,000, as in Kafka",
)
GROUPS = Limit("groups", "groups", ("ottla.groups.max",), "GROUP_MAX_SIZE_REACHED for a new group")
MEMBERS = Limit(
    "group-members", "members of all groups", ("ottla.group.members.max",), "GROUP_MAX_SIZE_REACHED for a new member"
)
GROUP_SIZE = Limit(
    "group-size",
    "members of one group",
    ("group.max.size", "group.consumer.max.size", "group.share.max.size"),
    "GROUP_MAX_SIZE_REACHED for a new member",
)
MEMBER_IDS = Limit(
    "member-ids",
    "bytes of member ids that were given out and not used, in a partition of `__consumer_offsets`",
    (),
    "the oldest is forgotten, and its member gets another",
    "4 MiB",
)
PRODUCERS = Limit(
    "producers",
    "producer ids that a partition remembers",
    ("ottla.producers.per.partition.max",),
    "the one that was silent for longest is forgotten, as when it expires, unless its transaction is open",
)
TRANSACTIONAL_IDS = Limit(
    "transactional-ids",
    "transactional ids",
    ("ottla.transactional.ids.max",),
    "POLICY_VIOLATION for a new one",
)
TOKENS = Limit(
    "delegation-tokens",
    "delegation tokens (until they expire and are removed)",
    ("ottla.delegation.tokens.max",),
    "POLICY_VIOLATION for a new one",
)
TOKENS_PER_OWNER = Limit(
    "delegation-tokens-per-owner",
    "delegation tokens of one owner",
    ("ottla.delegation.tokens.per.owner.max",),
    "POLICY_VIOLATION for a new one",
)
TOKEN_RENEWERS = Limit(
    "delegation-token-renewers",
    "renewers of a delegation token",
    ("ottla.delegation.token.renewers.max",),
    "POLICY_VIOLATION for the token",
    "also 4 KiB of names of principals",
)
FETCH_SESSIONS = Limit(
    "fetch-sessions",
    "fetch sessions",
    ("max.incremental.fetch.session.cache.slots",),
    "the fetch is answered without a session, unless an old session makes room",
    "also 256 MiB for all of them",
)
SHARE_SESSIONS = Limit(
    "share-sessions",
    "share sessions",
    ("group.share.max.share.sessions",),
    "SHARE_SESSION_LIMIT_REACHED",
    "also 500,000 share-partitions in all of them",
)
WAITING_EXCHANGES = Limit(
    "waiting-exchanges",
    "requests and replies that the lab keeps waiting",
    (),
    CLOSED,
    "10,000, and 256 MiB of them",
)
CLIENT_INSTANCES = Limit(
    "client-instances",
    "clients that push metrics",
    (),
    "the one that was silent for longest is forgotten, until it comes again",
    "16,384, as in Kafka",
)
CLIENT_SERIES = Limit(
    "client-series",
    "time series that clients have pushed",
    ("ottla.client.metrics.series.max",),
    "a new series is not kept",
    "also 5,000 of one client",
)
TOPOLOGY_DESCRIPTION_BYTES_MAX = 64 << 20
TOPOLOGY_DESCRIPTIONS = Limit(
    "topology-descriptions",
    "bytes of the descriptions of streams groups' topologies",
    (),
    "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED; the group's members are asked again later",
    "64 MiB; 1 MiB of one, which is not asked for again",
)
WRONG_SECRETS = Limit(
    "wrong-secrets",
    "wrong secrets for `/oauth/token` from one address for one client in a minute",
    ("ottla.oauth.failures.max",),
    "429, also for the right secret, until some time has passed",
    "four times as many for all clients of an address",
)
LIMITS = (
    CONNECTIONS,
    CONNECTIONS_PER_IP,
    BUFFERED_BYTES,
    REQUEST_BYTES,
    REQUEST_ELEMENTS,
    REPLY_BYTES,
    DECOMPRESSED_BYTES,
    EXPRESSION,
    CREATED,
    GROUPS,
    MEMBERS,
    GROUP_SIZE,
    MEMBER_IDS,
    PRODUCERS,
    TRANSACTIONAL_IDS,
    TOKENS,
    TOKENS_PER_OWNER,
    TOKEN_RENEWERS,
    FETCH_SESSIONS,
    SHARE_SESSIONS,
    WAITING_EXCHANGES,
    CLIENT_INSTANCES,
    CLIENT_SERIES,
    TOPOLOGY_DESCRIPTIONS,
    WRONG_SECRETS,
)


BY_NAME = {limit.name: limit for limit in LIMITS}


class Limits:
    """How often each limit of a broker was reached."""

    def __init__(self, sparsely: SparseLog) -> None:
        self._sparsely = sparsely
        self.counts: Counter[str] = Counter()

    def note(self, error: ApiError, who: str) -> None:
        """Counts the limit that an error comes from, if it comes from one."""
        if error.limit:
            self.reached(BY_NAME[error.limit], who)

    def reached(self, limit: Limit, who: str) -> None:
        """Counts and logs that `who` reached a limit: the address of a client, or the name of a group or partition."""
        self.counts[limit.name] += 1
        raises = f"; to raise it, set {' or '.join(limit.keys)}" if limit.keys else ""
        self._sparsely.warning(
            f"limit {limit.name}",
            "%s: the limit %s (%s) was reached: %s%s",
            who,
            limit.name,
            limit.what,
            limit.beyond,
            raises,
        )
