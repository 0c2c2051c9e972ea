"""Imports and compiles, soon after the start and one thing at a time, what first requests need but the start does not.

The start is faster without it. A client that needs a module earlier causes its import, and other clients wait: up to a
tenth of a second for a coordinator. The first request of a group compiles some twenty classes, readers and writers, and
opens a log; so these are compiled before. What other requests compile takes some milliseconds, less if an earlier
process has cached it (`protocol.cached_functions`).
"""

from __future__ import annotations

import gc
import importlib
import os
from collections.abc import Iterator, Mapping

from ... import coordinator, protocol
from ...protocol import codec
from .api import Api

GC_THRESHOLDS = (5000, 0, 0)
"""A collection looks at 15,000 new objects at most, which takes one or two milliseconds."""
OLDEST = 2  # of the generations
MODULES_FIRST = (  # modules that others import, so that each step imports little
    "hashlib",
    "re2",
    "uuid",
    "xxhash",
    "pdb",  # construct's
    "construct",
    f"{protocol.__name__}.trees",
    *(
        f"{coordinator.__name__}.group.{name}"
        for name in (
            "assignors.registry",
            "classic.group",
            "state",
            "consumer.records",
            "classic.rebalance",
            "consumer.membership",
            "consumer.heartbeat",
            "streams.group",
            "streams.heartbeat",
        )
    ),
    f"{__name__.removesuffix('.net.warming')}.replica.cleaning_works",
    f"{__name__.removesuffix('.net.warming')}.tls.listener",
    f"{__name__.removesuffix('.net.warming')}.error_replies",
    f"{__name__.removesuffix('.warming')}.turns",
    f"{__name__.removesuffix('.net.warming')}.apis._known_produces",
)
COORDINATED = frozenset((*range(8, 17), 22, *range(24, 29), 68, 69, *range(76, 80), *range(83, 90), 93))
"""The keys of APIs that coordinators serve."""


def steps(apis: Mapping[int, Api]) -> Iterator[None]:
    """Yields after each thing that is imported or compiled. OTTLA_WARM=0: there is none, for brokers that live for
    seconds, as those of tests do.
    """
    if os.environ.get("OTTLA_WARM") == "0":
        return
    yield from imports(apis)
    yield from codecs(apis)


def imports(apis: Mapping[int, Api]) -> Iterator[None]:
    """Imports one module per step: those of the coordinators, then those of the APIs."""
    for name in MODULES_FIRST:
        importlib.import_module(name)
        yield
    import pkgutil

    for info in pkgutil.walk_packages(coordinator.__path__, f"{coordinator.__name__}."):
        importlib.import_module(info.name)
        yield
    for api in apis.values():
        _ = api.handle
        yield


def codecs(apis: Mapping[int, Api]) -> Iterator[None]:
    """Compiles one reader or writer per step: of the newest versions of the coordinators' APIs,
    and of their records.
    """
    from ...coordinator.format import group_key_names, share_key_names, transaction_key_names
    from ...coordinator.group.format import WRITTEN_VERSIONS

    for key, api in apis.items():
        if key in COORDINATED:
            codec.reader(api.request, api.high)
            yield
            codec.writer(api.response, api.high)
            yield
    for name in (*group_key_names().values(), *share_key_names().values(), *transaction_key_names().values()):
        value = name.removesuffix("Key") + "Value"
        codec.writer(name, 0)
        codec.writer(value, WRITTEN_VERSIONS.get(value, 0))
        yield


def freeze() -> None:
    """Excludes all present objects from garbage collection, which was disabled during the start.

    Does not collect cycles first, because that would block the loop for as long as a hundred requests; a start leaves
    some hundreds of cycles. Collections are rarer afterwards: a request makes some dozens of objects,
    and no cycles. What a full collection leaves stays, and is not looked at again.
    """
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    if _exclude not in gc.callbacks:
        gc.callbacks.append(_exclude)
    gc.enable()


def _exclude(phase: str, collected: Mapping[str, int]) -> None:
    if phase == "stop" and collected["generation"] == OLDEST:
        gc.freeze()
