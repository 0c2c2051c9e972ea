"""Requests that repeat the elements of an array as often as they may, for every array of every API, and a little more
often than that.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.broker.apis import apis
from ottla.broker.net.api import Api
from ottla.broker.net.limits import elements_max
from ottla.protocol import messages as m

from ..support.floods import GROUP, PARTITIONS, TOPIC, floods, prepare
from ..support.wire import Wire, request_frame
from .harness import Site, attack, refused

TIMES = 20_000


def _send(site: Site, frame: bytes) -> None:
    """Sends a frame over a connection of its own; the answer, or the connection's end, is waited for."""
    with site.wire() as wire, refused():
        wire.send(frame)
        wire.read_frame()


def _flood(api: Api) -> Callable[[Site], None]:
    def run(site: Site) -> None:
        with site.wire() as wire:
            topic_id = prepare(wire.ask)
        for flood in floods(api, topic_id):
            _send(site, flood.frame)

    run.__name__ = f"floods_of_{api.module[4:]}"
    run.__doc__ = (
        f"Every array of {api.name} with as many elements as it may have, of the same name and of different ones."
    )
    return run


for one in apis().values():
    attack()(_flood(one))


@attack(quick=True)
def more_elements_than_a_request_may_have(site: Site) -> None:
    """Every array of every API with more elements than are allowed, as far as 4 MiB hold them."""
    with site.wire() as wire:
        topic_id = prepare(wire.ask)
    for api in apis().values():
        for flood in floods(api, topic_id, 2 * elements_max(api.key)):
            if not flood.distinct:
                _send(site, flood.frame)


@attack(quick=True)
def four_mebibytes_of_what_no_schema_knows(site: Site) -> None:
    """Tagged fields in the header, and in the message."""
    tags = [(1000 + n, b"") for n in range(1_000_000)]
    message = m.MetadataRequest(topics=[], unknown_tags=tags)
    _send(site, request_frame("Metadata", 12, message))


def _named_again_and_again(site: Site, name: str, version: int, message: object) -> None:
    with site.wire() as wire:
        prepare(wire.ask)
    _send(site, request_frame(name, version, message))


@attack(quick=True)
def a_group_of_half_a_megabyte_named_twenty_thousand_times(site: Site) -> None:
    """Its member's metadata has half a megabyte, the request 160 KB, and the reply would have 10 GB."""
    with site.wire() as wire:
        prepare(wire.ask)
        join = m.JoinGroupRequest(
            group_id="heavy", session_timeout_ms=30_000, rebalance_timeout_ms=30_000, protocol_type="p"
        )
        join.protocols = [m.JoinGroupRequest.JoinGroupRequestProtocol(name="p", metadata=bytes(1 << 19))]
        joined = wire.ask("JoinGroup", 3, join)
        sync = m.SyncGroupRequest(group_id="heavy", generation_id=joined.generation_id, member_id=joined.member_id)
        sync.assignments = [m.SyncGroupRequest.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"a")]
        assert wire.ask("SyncGroup", 1, sync).error_code == 0
    _send(site, request_frame("DescribeGroups", 5, m.DescribeGroupsRequest(groups=["heavy"] * TIMES)))


@attack(quick=True)
def the_broker_described_twenty_thousand_times(site: Site) -> None:
    """380 keys of it each time."""
    r = m.DescribeConfigsRequest
    resource = r.DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None)
    _named_again_and_again(site, "DescribeConfigs", 4, r(resources=[resource] * TIMES, include_synonyms=True))


@attack(quick=True)
def producers_of_the_same_partition(site: Site) -> None:
    with site.wire() as wire:
        prepare(wire.ask)
    r = m.DescribeProducersRequest
    topic = r.TopicRequest(name=TOPIC, partition_indexes=[0] * TIMES)
    _send(site, request_frame("DescribeProducers", 0, r(topics=[topic])))


@attack(quick=True)
def offsets_of_share_groups_in_partitions_that_are_not_there(site: Site) -> None:
    """The share coordinator is asked again and again for them; nothing waits for the answer."""
    with site.wire() as wire:
        prepare(wire.ask)
        r = m.DescribeShareGroupOffsetsRequest
        topic = r.DescribeShareGroupOffsetsRequestTopic(topic_name=TOPIC, partitions=list(range(PARTITIONS, TIMES)))
        wire.say(
            "DescribeShareGroupOffsets",
            1,
            r(groups=[r.DescribeShareGroupOffsetsRequestGroup(group_id=GROUP, topics=[topic])]),
        )
        with Wire(site.broker.bootstrap_servers) as other:
            other.ask("Metadata", 12, m.MetadataRequest(topics=[]))
