"""The quotas of users and client ids: follows the limits of the metadata, and measures each request against them
(KIP-13, KIP-124, KIP-219, KIP-599). All nodes have the same limits. Each measures its own clients; what clients create
and delete the controller measures, for all nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Final

from ..coordinator.metadata import quotas as keys
from ..coordinator.metadata.delta import MetadataDelta
from ..coordinator.metadata.state import MetadataState, Quota
from ..coordinator.quota.clients import MutationQuota, RateQuota
from ..coordinator.quota.limits import DEFAULT, Entity, Limits, Name
from ..coordinator.quota.rates import DEFAULT_WINDOWS, Rate, Windows
from ..protocol.errors import ApiError, Errors
from .clock import Schedule

PRODUCE: Final = 0
WRITE_TXN_MARKERS: Final = 27
PERCENT_OF_A_SECOND = 1e7  # nanoseconds


class QuotaLimits:
    """The limits of all kinds, by the keys of the metadata. `is_used`: whether there is one; without one nothing is
    measured.
    """

    def __init__(self, image: MetadataState) -> None:
        self.image = image
        self.is_used = False
        self.of_kind: dict[str, Limits] = {
            keys.PRODUCER_BYTE_RATE: Limits(),
            keys.CONSUMER_BYTE_RATE: Limits(),
            keys.REQUEST_PERCENTAGE: Limits(),
            keys.CONTROLLER_MUTATION_RATE: Limits(),
        }

    def load(self) -> None:
        """Takes over the limits of the metadata at the start."""
        for quota in self.image.quotas:
            self._follow(quota)

    def metadata_changed(self, delta: MetadataDelta) -> Iterator[None]:
        for quota in delta.quotas:
            self._follow(quota)
            yield

    def _follow(self, quota: Quota) -> None:
        limits = self.of_kind.get(quota.key)
        entity = dict(quota.entity)
        if limits is None or not entity or not entity.keys() <= {keys.USER, keys.CLIENT_ID}:
            return
        record = self.image.quotas.get(quota)
        limits.put(
            Entity(_name(entity, keys.USER), _name(entity, keys.CLIENT_ID)), None if record is None else record.value
        )
        self.is_used = any(limits.are_used for limits in self.of_kind.values())


class ClientQuotas:
    """What the clients of a node use, by all kinds of quotas."""

    def __init__(self, schedule: Schedule, limits: QuotaLimits, windows: Windows, mutation_windows: Windows) -> None:
        self.schedule = schedule
        self.limits = limits
        self.windows = windows
        self.mutations = MutationQuota(mutation_windows, limits.of_kind[keys.CONTROLLER_MUTATION_RATE])
        self._begin()

    def _begin(self) -> None:
        of_kind, windows = self.limits.of_kind, self.windows
        self.produce = RateQuota(windows, of_kind[keys.PRODUCER_BYTE_RATE])
        self.fetch = RateQuota(windows, of_kind[keys.CONSUMER_BYTE_RATE])
        self.request = RateQuota(windows, of_kind[keys.REQUEST_PERCENTAGE], throttle_ms_max=windows.size_ms)
        self.exempt = Rate(DEFAULT_WINDOWS)  # percentages of requests that are never throttled

    def of_node(self) -> ClientQuotas:
        """Returns the quotas of another node."""
        found = copy(self)
        found._begin()
        return found


def _name(entity: dict[str, str | None], kind: str) -> Name:
    if kind not in entity:
        return None
    name = entity[kind]
    return DEFAULT if name is None else name


class Throttled(ApiError):
    """THROTTLING_QUOTA_EXCEEDED. Kafka leaves its text out of replies."""

    message_or_default = None

    def __init__(self) -> None:
        super().__init__(Errors.THROTTLING_QUOTA_EXCEEDED)


class Usage:
    """What one request uses. The time that is spent on it counts between `resume` and `pause`, first from its arrival;
    what calls one of them again has no effect.
    """

    __slots__ = ("_client_id", "_is_counted", "_is_running", "_mutation_until_ms", "_quotas", "_since_ns", "_spent_ns",
                 "_user", "size_bytes", "throttle_ms")  # fmt: skip

    def __init__(self, quotas: ClientQuotas, principal: str, client_id: str | None, size_bytes: int) -> None:
        self._quotas = quotas
        self._user = principal.partition(":")[2]
        self._client_id = client_id or ""
        self.size_bytes = size_bytes
        self._spent_ns = 0
        self._since_ns = quotas.schedule.work_ns()
        self._is_running = True
        self.throttle_ms = 0
        self._mutation_until_ms = 0
        self._is_counted = False

    @property
    def _now_ms(self) -> int:
        return self._quotas.schedule.monotonic_ms()

    def pause(self) -> None:
        if self._is_running:
            self._is_running = False
            self._spent_ns += self._quotas.schedule.work_ns() - self._since_ns

    def resume(self) -> None:
        if not self._is_running:
            self._is_running = True
            self._since_ns = self._quotas.schedule.work_ns()

    def _percentage(self) -> float:
        """Returns the time spent so far, in percent of a second."""
        if self._is_running:
            self.pause()
            self.resume()
        return self._spent_ns / PERCENT_OF_A_SECOND

    def mutate(self, count: int, is_strict: bool) -> None:
        """Takes tokens for partitions that are created or deleted.

        Raises Throttled: `is_strict`, and tokens are owed already.
        """
        throttle_ms = self._quotas.mutations.take(self._user, self._client_id, count, self._now_ms, is_strict)
        if throttle_ms is None:
            return
        self._mutation_until_ms = self._now_ms + throttle_ms
        if is_strict:
            raise Throttled

    def fetch_bytes_max(self) -> float | None:
        """Returns how many bytes a Fetch may return without being throttled for sure; None for any."""
        return self._quotas.fetch.most(self._user, self._client_id)

    def fetched(self, size_bytes: int) -> int:
        """Counts the reply of a Fetch; returns its throttle time. If that is more than 0, no records may be sent, and
        the bytes do not count.
        """
        quotas, now_ms = self._quotas, self._now_ms
        own_ms = quotas.fetch.record(self._user, self._client_id, size_bytes, now_ms)
        self._throttle(quotas.fetch, own_ms, self._timed(now_ms), now_ms)
        if self.throttle_ms:
            quotas.fetch.record_unchecked(self._user, self._client_id, -size_bytes, now_ms)
        return self.throttle_ms

    def exempt(self) -> None:
        """Counts the time of a request that is never throttled."""
        self._is_counted = True
        self._quotas.exempt.record(self._percentage(), self._now_ms)

    def finish(self, api_key: int, is_answered: bool) -> int:
        """Counts the request at its end, unless its handler has; returns its throttle time in ms."""
        if self._is_counted:
            return self.throttle_ms
        quotas, now_ms = self._quotas, self._now_ms
        if api_key == WRITE_TXN_MARKERS or not is_answered:
            self.exempt()
            time_ms = 0
        else:
            time_ms = self._timed(now_ms)
        if api_key == PRODUCE:
            own_ms = quotas.produce.record(self._user, self._client_id, self.size_bytes, now_ms)
            self._throttle(quotas.produce, own_ms, time_ms, now_ms)
        else:
            self._throttle(quotas.mutations, max(self._mutation_until_ms - now_ms, 0), time_ms, now_ms)
        return self.throttle_ms

    def _timed(self, now_ms: int) -> int:
        """Counts the processor time; returns the throttle time for it."""
        self._is_counted = True
        return self._quotas.request.record(self._user, self._client_id, self._percentage(), now_ms)

    def _throttle(self, own: RateQuota | MutationQuota, own_ms: int, time_ms: int, now_ms: int) -> None:
        """Chooses the longer of two throttle times, and notes it with its quota."""
        self.throttle_ms = max(own_ms, time_ms)
        if self.throttle_ms:
            quota = own if own_ms > time_ms else self._quotas.request
            quota.throttled(self._user, self._client_id, self.throttle_ms, now_ms)
