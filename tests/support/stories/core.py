"""Requests of stories about topics, records and configurations."""

from __future__ import annotations

from typing import Any

from ottla.protocol import messages as m

from ..differential import Pair

# fetch and offsets


def fetch_request(version: int, name: str, topic_id: bytes, offset: int, **more: Any) -> Any:
    r = m.FetchRequest
    known = {
        k: more.pop(k)
        for k in ("partition", "current_leader_epoch", "last_fetched_epoch", "partition_max_bytes")
        if k in more
    }
    part = r.FetchPartition(fetch_offset=offset, **{"partition_max_bytes": 1 << 20, **known})
    t = r.FetchTopic(partitions=[part])
    if version >= 13:
        t.topic_id = topic_id
    else:
        t.topic = name
    return r(topics=[t], **{"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, **more})


def offsets_topic_made(pair: Pair) -> None:
    """Waits until both brokers have `__consumer_offsets`."""
    find = m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    for wire in pair.wires:
        while wire.ask("FindCoordinator", 4, find).coordinators[0].error_code:
            continue


# configs


def describe(name: str, kind: int = 2, keys: list[str] | None = None, **more: Any) -> Any:
    r = m.DescribeConfigsRequest
    return r(
        resources=[r.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)], **more
    )


def alter(pair: Pair, kind: int, name: str, *changes: tuple[str, int, str | None], keeps: bool = False) -> None:
    """Alters the configuration of a resource; without `keeps` it is only checked whether that would be done."""
    r = m.IncrementalAlterConfigsRequest
    configs = [r.AlterableConfig(name=key, config_operation=how, value=value) for key, how, value in changes]
    resource = r.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    pair.ask("IncrementalAlterConfigs", 1, r(resources=[resource], validate_only=not keeps))
