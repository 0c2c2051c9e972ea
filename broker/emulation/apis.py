"""The APIs of an emulated release: those that this broker serves and the release has, in the versions of the release.

APIs between brokers (LeaderAndIsr, StopReplica, UpdateMetadata, ControlledShutdown, AlterPartition) are in
`between_brokers`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping

from ..net.api import Api, Handler
from .releases import Release

ADAPTED = {
    0: "produce",
    1: "fetch",
    2: "list_offsets",
    3: "metadata",
    8: "offset_commit",
    9: "offset_fetch",
    18: "api_versions",
    19: "create_topics",
    20: "delete_topics",
    32: "describe_configs",
    33: "alter_configs",
    44: "alter_configs",
}
"""The modules of the APIs that behave otherwise than today, by key."""
PRODUCER_IDS = Api(
    67,
    __package__,
    "allocate_producer_ids",
    "AllocateProducerIdsRequest",
    "AllocateProducerIdsResponse",
    low=0,
    high=0,
    has_records=False,
    elements_max=0,
)
"""The API that brokers of Kafka 3.0 to 3.9 with ZooKeeper ask their controller with."""
Adapt = Callable[[Handler, Release, Mapping[int, Api]], Handler]


class EmulatedApi(Api):
    """An API in the versions of a release. `served`: all APIs of the release."""

    __slots__ = ("release", "served")

    def __init__(self, api: Api, release: Release, served: Mapping[int, Api]) -> None:
        low, high = release.apis[api.key]
        super().__init__(
            api.key,
            api.package,
            api.module,
            api.request,
            api.response,
            low,
            min(high, api.high),
            api.has_records,
            api.elements_max,
        )
        self.release = release
        self.served = served

    @property
    def listed_low(self) -> int:
        return self.low if self.release.is_before(4, 0) else super().listed_low

    def _import(self) -> Handler:
        handle = super()._import()
        adapter = ADAPTED.get(self.key)
        if adapter is not None:
            adapt: Adapt = importlib.import_module(f"{__package__}.{adapter}").adapted
            handle = self._handle = adapt(handle, self.release, self.served)
        return handle


def emulated(release: Release, present: Mapping[int, Api]) -> dict[int, Api]:
    """Returns the APIs of a release. `present`: those of this broker."""
    served: dict[int, Api] = {}
    for key, api in present.items():
        if key in release.apis and release.apis[key][0] <= api.high:
            served[key] = EmulatedApi(api, release, served)
    if PRODUCER_IDS.key in release.apis:
        served[PRODUCER_IDS.key] = PRODUCER_IDS
    return served
