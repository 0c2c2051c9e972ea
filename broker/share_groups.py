"""Share groups between their two coordinators: what the group coordinator decides, the share coordinator is told, and the reverse (KIP-932)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..coordinator.group import share_offsets
from ..coordinator.share.state import PartitionKey
from ..protocol.errors import ApiError
from .later import Later

if TYPE_CHECKING:
    from ..coordinator.group.share_heartbeat import Unset
    from .broker import Broker

logger = logging.getLogger("ottla")
Errors = dict[tuple[bytes, int], ApiError]
"""What went wrong, by topic id and partition."""


async def each(keys: Iterable[PartitionKey], call: Callable[[PartitionKey], Later[Any]]) -> tuple[dict[PartitionKey, Any], Errors]:
    """Makes a call for every share-partition at once; results and errors."""
    waiting = [(key, call(key)) for key in keys]
    results: dict[PartitionKey, Any] = {}
    errors: Errors = {}
    for key, later in waiting:
        try:
            results[key] = await later
        except ApiError as error:
            errors[key.topic_id, key.partition] = error
    return results, errors


def keys_of(group_id: str, topics: Mapping[bytes, Iterable[int]]) -> list[PartitionKey]:
    return [PartitionKey(group_id, topic_id, index) for topic_id, partitions in topics.items() for index in sorted(partitions)]


async def initialize(broker: Broker, unset: Unset) -> None:
    """Has the share coordinator initialise what a heartbeat found missing, and notes in the group how that went."""
    partitions = {topic: of for topic, (of, _) in unset.topics.items()}
    starts = {topic: start for topic, (_, start) in unset.topics.items()}

    def call(key: PartitionKey) -> Later[None]:
        return broker.sharing.persister.initialize(key, unset.state_epoch, starts[key.topic_id])

    _, errors = await each(keys_of(unset.group_id, partitions), call)
    try:
        await note_initialized(broker, unset.group_id, partitions, errors)
    except ApiError as error:
        logger.warning("the share-partitions of %s are not noted as initialised: %s", unset.group_id, error)


async def note_initialized(broker: Broker, group_id: str, partitions: Mapping[bytes, frozenset[int]], errors: Errors) -> None:
    """The second step of an initialisation. ApiError."""
    if errors:
        logger.warning("share-partitions of %s were not initialised: %s", group_id, next(iter(errors.values())))
    note = share_offsets.uninitialized if errors else share_offsets.initialized
    await broker.groups.write(group_id, lambda shard: note(shard, group_id, partitions))


async def delete_states(broker: Broker, group_id: str, topics: Mapping[bytes, Iterable[int]]) -> Errors:
    """Has the share coordinator forget share-partitions."""
    _, errors = await each(keys_of(group_id, topics), broker.sharing.persister.delete)
    return errors
