"""Topics, partitions and configurations: many of them at once, and few of them among many."""

from __future__ import annotations

import time
from typing import Any

from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.wire import Wire
from .harness import Site, attack

SETTINGS = {
    "cleanup.policy": "compact",
    "retention.ms": "1000",
    "segment.bytes": "2000000",
    "max.message.bytes": "2000",
}
C, P = m.CreateTopicsRequest, m.CreatePartitionsRequest


def _topic(name: str, partitions: int = 1, settings: dict[str, str] | None = None) -> Any:
    configs = [C.CreatableTopicConfig(name=key, value=value) for key, value in (settings or {}).items()]
    return C.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=configs)


def _create(wire: Wire, *topics: Any, step: int = 50) -> None:
    for at in range(0, len(topics), step):
        reply = wire.ask("CreateTopics", 7, C(topics=list(topics[at : at + step]), timeout_ms=60_000))
        assert not any(one.error_code for one in reply.topics), reply


def _grow(wire: Wire, name: str, partitions: int, step: int = 200) -> None:
    _create(wire, _topic(name, step))
    for count in range(2 * step, partitions + 1, step):
        wanted = P.CreatePartitionsTopic(name=name, count=count, assignments=None)
        reply = wire.ask("CreatePartitions", 3, P(topics=[wanted], timeout_ms=60_000))
        assert reply.results[0].error_code == 0, reply


def _configure(wire: Wire, kind: int, name: str, values: dict[str, str]) -> None:
    r = m.IncrementalAlterConfigsRequest
    configs = [r.AlterableConfig(name=key, config_operation=0, value=value) for key, value in values.items()]
    reply = wire.ask(
        "IncrementalAlterConfigs",
        1,
        r(resources=[r.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)]),
    )
    assert reply.responses[0].error_code == 0, reply


def _timed(site: Site, what: str, began: float) -> None:
    site.note(f"{what}: {(time.monotonic() - began) * 1000:.0f} ms")


@attack()
def forty_configurations_among_three_thousand_topics(site: Site) -> None:
    """Each configuration of one topic, of a group, and of all brokers."""
    with site.wire() as wire:
        _create(wire, *(_topic(f"t{n}", 1, {"retention.ms": "1000"}) for n in range(3000)))
        began = time.monotonic()
        for n in range(40):
            _configure(wire, 2, f"t{n}", SETTINGS)
        for n in range(20):
            _configure(wire, 32, f"g{n}", {"consumer.session.timeout.ms": "50000"})
        _configure(wire, 4, "", {"log.segment.bytes": "2000000"})
        _timed(site, "61 configurations", began)


@attack()
def four_topics_with_four_settings_among_14300_partitions(site: Site) -> None:
    """What Streams, Connect and Spring do when they start."""
    with site.wire() as wire:
        _grow(wire, "many", 14_300)
        began = time.monotonic()
        _create(wire, *(_topic(f"t{n}", 1, SETTINGS) for n in range(4)))
        _timed(site, "four topics", began)


@attack(quick=True)
def ninety_thousand_partitions_in_52_bytes(site: Site) -> None:
    """Nine topics that are to have 10,000 partitions more, each of which alone would be let through."""
    with site.wire() as wire:
        names = [f"t{n}" for n in range(9)]
        _create(wire, *map(_topic, names))
        wanted = [P.CreatePartitionsTopic(name=name, count=10_001, assignments=None) for name in names]
        reply = wire.ask("CreatePartitions", 3, P(topics=wanted, timeout_ms=60_000))
        assert {one.error_code for one in reply.results} == {Errors.POLICY_VIOLATION}
        reply = wire.ask(
            "CreateTopics", 7, C(topics=[_topic(f"{name}-more", 10_000) for name in names], timeout_ms=60_000)
        )
        assert {one.error_code for one in reply.topics} == {Errors.POLICY_VIOLATION}


@attack()
def the_most_partitions_that_a_request_may_have(site: Site) -> None:
    """They are one packed record for the controller; the commit is read and followed, and logs are made, in steps."""
    with site.wire() as wire:
        began = time.monotonic()
        _create(wire, _topic("many", 9_999))
        _timed(site, "9,999 partitions", began)
        wire.ask("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=["many"], timeout_ms=60_000))
        _create(wire, _topic("many", 1))


@attack(quick=True)
def topics_made_and_removed_again_and_again(site: Site) -> None:
    """Hundreds of partitions of the same name, whose predecessors have not left yet."""
    with site.wire() as wire:
        for _ in range(5):
            _create(wire, _topic("again", 300))
            reply = wire.ask("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=["again"], timeout_ms=60_000))
            assert reply.responses[0].error_code == 0


@attack(quick=True)
def names_that_collide(site: Site) -> None:
    """`a_1` where there is `a.1`, for five hundred topics, and the same name five thousand times."""
    with site.wire() as wire:
        _create(wire, *(_topic(f"a.{n}") for n in range(500)))
        colliding = [_topic(f"a_{n}") for n in range(500)]
        reply = wire.ask("CreateTopics", 7, C(topics=colliding, timeout_ms=60_000))
        assert {one.error_code for one in reply.topics} == {Errors.INVALID_TOPIC_EXCEPTION}
        reply = wire.ask("CreateTopics", 7, C(topics=[_topic("same")] * 5_000, timeout_ms=60_000))
        assert [one.error_code for one in reply.topics] == [Errors.INVALID_REQUEST]


@attack()
def five_thousand_topics_in_one_request(site: Site) -> None:
    """They are made, get settings, one partition more each, and are deleted, in one request each time."""
    names = [f"a.topic-{n}" for n in range(5_000)]
    r = m.IncrementalAlterConfigsRequest
    settings = [
        r.AlterableConfig(name=name, config_operation=0, value="86400000") for name in ("retention.ms", "segment.ms")
    ]
    altered = [r.AlterConfigsResource(resource_type=2, resource_name=name, configs=settings) for name in names[:3_300]]
    more = [P.CreatePartitionsTopic(name=name, count=2, assignments=None) for name in names]
    with site.wire() as wire:
        began = time.monotonic()
        _create(wire, *map(_topic, names), step=len(names))
        _timed(site, "made", began)
        began = time.monotonic()
        replies = (
            wire.ask("IncrementalAlterConfigs", 1, r(resources=altered)).responses,
            wire.ask("CreatePartitions", 3, P(topics=more, timeout_ms=60_000)).results,
            wire.ask("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=names, timeout_ms=60_000)).responses,
        )
        _timed(site, "altered and deleted", began)
        assert [{one.error_code for one in reply} for reply in replies] == [{0}] * 3


@attack()
def thousands_of_settings_of_one_broker(site: Site) -> None:
    """Added twice and removed again: they are not copied once per setting."""
    r = m.AlterConfigsRequest
    with site.wire() as wire:
        for first in (0, 5_000):
            _configure(wire, 4, "", {f"key.{n}": "1" for n in range(first, first + 9_900)})
        kept = [r.AlterableConfig(name="min.insync.replicas", value="1")]
        kept += [r.AlterableConfig(name=f"key.{n}", value="1") for n in range(5_000)]
        resource = r.AlterConfigsResource(resource_type=4, resource_name="", configs=kept)
        assert wire.ask("AlterConfigs", 2, r(resources=[resource])).responses[0].error_code == 0


@attack(
    settings={
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
)
def ten_thousand_acls_made_and_deleted(site: Site) -> None:
    """By one request each."""
    r, d = m.CreateAclsRequest.AclCreation, m.DeleteAclsRequest
    wanted = [r(resource_type=2, resource_name=f"topic-{n}", resource_pattern_type=3) for n in range(10_000)]
    for one in wanted:
        one.principal, one.host, one.operation, one.permission_type = "User:a", "*", 3, 3
    every = d.DeleteAclsFilter(resource_type_filter=2, pattern_type_filter=1, operation=1, permission_type=1)
    every.resource_name_filter = every.principal_filter = every.host_filter = None
    with site.wire() as wire:
        reply = wire.ask("CreateAcls", 3, m.CreateAclsRequest(creations=wanted))
        assert {one.error_code for one in reply.results} == {0}
        found = wire.ask("DeleteAcls", 3, d(filters=[every])).filter_results[0]
        assert (found.error_code, len(found.matching_acls)) == (0, 10_000)
