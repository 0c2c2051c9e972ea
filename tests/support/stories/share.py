"""Share groups in the differential stories."""

from __future__ import annotations

from typing import Any

from ottla.protocol import messages as m

from ..differential import Pair
from ..poll import until
from ..transcripts import Asks
from .topics import topic

Ids = tuple[bytes, bytes]


def heartbeat(
    pair: Pair, group: str, epoch: int, names: list[str] | None = None, member: str = "m1", **more: Any
) -> Any:
    request = m.ShareGroupHeartbeatRequest(
        group_id=group, member_id=member, member_epoch=epoch, subscribed_topic_names=names, **more
    )
    return pair.ask("ShareGroupHeartbeat", 1, request)[0]


def configure(pair: Pair, group: str, **values: str) -> None:
    r = m.IncrementalAlterConfigsRequest
    configs = [r.AlterableConfig(name=k.replace("_", "."), config_operation=0, value=v) for k, v in values.items()]
    pair.ask(
        "IncrementalAlterConfigs",
        1,
        r(resources=[r.AlterConfigsResource(resource_type=32, resource_name=group, configs=configs)]),
    )


def began(pair: Pair, name: str, partitions: int = 1, group: str | None = None, **config: str) -> Ids:
    """A topic, and a group of its name with one member whose share-partitions are initialised."""
    ids = topic(pair, name, partitions)
    joined(pair, group or name, name, ids, partitions, **config)
    return ids


def joined(pair: Pair, group: str, name: str, ids: Ids, partitions: int, **config: str) -> None:
    """A member of a group; its share-partitions are initialised."""
    configure(pair, group, share_auto_offset_reset="earliest", **config)
    heartbeat(pair, group, 0, [name])
    initialized(pair, group, ids, partitions)


def initialized(pair: Pair, group: str, ids: Ids, partitions: int = 1) -> None:
    """Waits until the share coordinators know the share-partitions, and the group coordinators know that they do."""
    d = m.DescribeShareGroupOffsetsRequest
    request = d(groups=[d.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)])
    for wire, topic_id in ((pair.ours, ids[0]), (pair.theirs, ids[1])):

        def are_initialized(wire: Asks = wire, topic_id: bytes = topic_id) -> bool:
            found = wire.ask("DescribeShareGroupOffsets", 1, request).groups[0]
            return any(t.topic_id == topic_id and len(t.partitions) == partitions for t in found.topics)

        until(are_initialized, "the share-partitions are initialised")
