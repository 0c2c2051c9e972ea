"""The metrics of the limits against abuse: how often each was reached, how much is in use, and how much may be."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from ...protocol.errors import Errors
from .. import limits
from ..limits import LIMITS, Limit
from ..telemetry.client_metrics_manager import INSTANCES_MAX
from .served import Served


def limit_metrics(server: Served) -> Iterator[Metric]:
    counts = server.broker.limits.counts
    errors = [one for broker in server.broker.views() for one in broker.metrics.errors.items()]
    reached = CounterMetricFamily(
        "ottla_limit_reached", "How often a limit against abuse was reached.", labels=["limit"]
    )
    refused = sum(number for (_, code), number in errors if code == Errors.POLICY_VIOLATION)
    counted = sum(counts[one.name] for one in LIMITS if one.beyond.startswith(Errors.POLICY_VIOLATION.name))
    elsewhere = {
        limits.CREATED: refused - counted,  # POLICY_VIOLATION has no other cause
        limits.MEMBER_IDS: server.broker.groups.counts["member_ids_forgotten"],
    }
    for limit in LIMITS:
        reached.add_metric([limit.name], elsewhere.get(limit, counts[limit.name]))
    yield reached
    used = GaugeMetricFamily("ottla_limit_used", "How much of a limit against abuse is in use.", labels=["limit"])
    allowed = GaugeMetricFamily("ottla_limit_allowed", "How much a limit against abuse allows.", labels=["limit"])
    for limit, now, most in _in_use(server):
        used.add_metric([limit.name], now)
        allowed.add_metric([limit.name], most)
    yield from (used, allowed)


def _in_use(server: Served) -> Iterator[tuple[Limit, int, int]]:
    """Yields the limits on what stays, with what is in use and what is allowed; of limits on one node, one address, one
    group and one partition, the greatest use.
    """
    broker, config = server.broker, server.config
    used, most = max((one.open, one.connections_max) for one in server.counts.all())
    yield limits.CONNECTIONS, used, most
    used, most = max((max(one.per_address.values(), default=0), one.per_address_max) for one in server.counts.all())
    yield limits.CONNECTIONS_PER_IP, used, most
    yield limits.BUFFERED_BYTES, server.buffered_bytes, server.buffered_bytes_max
    yield limits.GROUPS, broker.groups.room.groups, config["ottla.groups.max"]
    yield limits.MEMBERS, broker.groups.room.members, config["ottla.group.members.max"]
    producers = max((len(log.producers.by_id) for _, log in broker.partitions.open_logs()), default=0)
    yield limits.PRODUCERS, producers, broker.appender.producers_max
    yield limits.TRANSACTIONAL_IDS, broker.transactions.ids, config["ottla.transactional.ids.max"]
    if broker.tokens is not None:
        room = broker.tokens.policy.room
        yield limits.TOKENS, len(broker.image.tokens), room.tokens_max
        yield limits.TOKENS_PER_OWNER, max(broker.image.token_counts.values(), default=0), room.per_owner_max
    fetching = broker.extensions.get("fetch_sessions")
    slots: int = config["max.incremental.fetch.session.cache.slots"]
    yield limits.FETCH_SESSIONS, 0 if fetching is None else len(fetching.sessions), slots
    yield limits.CLIENT_INSTANCES, len(broker.client_metrics.clients), INSTANCES_MAX
    if broker.groups.descriptions is not None:
        yield limits.TOPOLOGY_DESCRIPTIONS, broker.groups.descriptions.bytes, limits.TOPOLOGY_DESCRIPTION_BYTES_MAX
    if broker.pushed_metrics is not None:
        yield limits.CLIENT_SERIES, broker.pushed_metrics.series, broker.pushed_metrics.series_max
    sharing = broker.share_partitions.sessions
    yield limits.SHARE_SESSIONS, len(sharing.sessions), sharing.limit()
