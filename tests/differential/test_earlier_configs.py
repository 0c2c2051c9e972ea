"""The configurations that earlier releases describe: their keys, with their defaults, types, sources and synonyms.
Kafka's answers were written down once, as in `test_earlier_releases`.
"""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker.config.config import LOCAL_DEFAULTS, OWN_KEYS
from ottla.protocol import messages as m

from ..support.differential import Pair
from ..support.stories.earlier import SETTINGS, earlier_brokers, led

pytestmark = pytest.mark.slow
release, kafka, ours, settled = earlier_brokers(
    ("0.11", "1.1", "2.4", "2.8", "3.9"), SETTINGS | {"log.retention.hours": 100, "log.roll.ms": 1_000_000}
)
OF_A_NODE = {"broker.id", "node.id", "host.name", "port", "listeners", "advertised.listeners", "log.dirs"}
GIVEN_HERE = {*OWN_KEYS, *LOCAL_DEFAULTS, *OF_A_NODE, "zookeeper.connect"}
"""What one broker on one machine is given, other than Kafka's oracle."""
SINCE_A_PATCH = {"alter.config.policy.kraft.compatibility.enable"}  # of 3.9.2, and 3.9.1 is asked
NEWEST = {"0.11": 0, "1.1": 1, "2.4": 2, "2.8": 4, "3.9": 4}
TOPIC, BROKER = 2, 4


def trimmed(reply: Any) -> None:
    for result in reply.results:
        result.configs = sorted(
            (one for one in result.configs if one.name not in GIVEN_HERE | SINCE_A_PATCH), key=lambda one: str(one.name)
        )


def describe(pair: Pair, version: int, kind: int, name: str) -> None:
    r = m.DescribeConfigsRequest
    for keys in (None, [], ["min.insync.replicas", "max.message.bytes", "absent"]):
        wanted = r.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
        pair.ask("DescribeConfigs", version, r(resources=[wanted], include_synonyms=version > 0))


def test_the_keys_of_topics_and_their_defaults(pair: Pair, release: str) -> None:
    r = m.MetadataRequest
    asked = r(topics=[r.MetadataRequestTopic(name="plain")])
    pair.until("Metadata", 0, asked, lambda reply: not reply.topics[0].error_code and led(reply.topics[0]))
    pair.trims["DescribeConfigs"] = trimmed
    for version in range(NEWEST[release] + 1):
        describe(pair, version, TOPIC, "plain")
    assert pair.errors("DescribeConfigs") == {"NONE"}


def test_the_keys_of_brokers_and_their_defaults(pair: Pair, release: str) -> None:
    pair.trims["DescribeConfigs"] = trimmed
    for version in range(NEWEST[release] + 1):
        describe(pair, version, BROKER, "1")
    assert pair.errors("DescribeConfigs") == {"NONE"}


REFUSED = {
    TOPIC: ({"retention.ms": "x"}, {"cleanup.policy": "nope"}, {"no.such": "x"}),
    BROKER: (
        {"message.max.bytes": "x"},
        {"message.max.bytes": "-1"},
        {"log.dirs": "x"},
        {"num.io.threads": "999"},
        {"ssl.client.auth": "sometimes"},
    ),
}


def test_wrong_values_and_what_is_said_of_them(pair: Pair, release: str) -> None:
    """By a broker with ZooKeeper; no other is emulated before 3.3. That of 0.11 has no configurations of brokers."""
    r = m.MetadataRequest
    asked = r(topics=[r.MetadataRequestTopic(name="altered")])
    pair.until("Metadata", 0, asked, lambda reply: not reply.topics[0].error_code and led(reply.topics[0]))
    a = m.AlterConfigsRequest
    for kind, name in ((TOPIC, "altered"), (BROKER, "1"), (BROKER, "")):
        for values in REFUSED[kind] if release in ("1.1", "2.4", "2.8") else ():
            configs = [a.AlterableConfig(name=key, value=value) for key, value in values.items()]
            resource = a.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
            pair.ask("AlterConfigs", 0, a(resources=[resource]))
    assert pair.errors("AlterConfigs") in (set(), {"INVALID_REQUEST", "INVALID_CONFIG"})


LISTS = ("delete,delete", "delete,compact,delete", " delete , delete", "delete,,delete", "delete,", "", "*")


def test_a_list_of_a_topic_keeps_what_is_repeated(pair: Pair, release: str) -> None:
    c, r = m.CreateTopicsRequest, m.MetadataRequest
    for index, text in enumerate(LISTS):
        name = f"listed-{index}"
        config = c.CreatableTopicConfig(name="cleanup.policy", value=text)
        made = c.CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=[config])
        replies = pair.ask("CreateTopics", 1, c(topics=[made], timeout_ms=30_000))
        if not replies[1].topics[0].error_code:
            asked = r(topics=[r.MetadataRequestTopic(name=name)])
            pair.until("Metadata", 0, asked, lambda reply: not reply.topics[0].error_code and led(reply.topics[0]))
            d = m.DescribeConfigsRequest
            wanted = d.DescribeConfigsResource(
                resource_type=TOPIC, resource_name=name, configuration_keys=["cleanup.policy"]
            )
            pair.ask("DescribeConfigs", 0, d(resources=[wanted]))
    refused = "UNKNOWN_SERVER_ERROR" if release in ("0.11", "1.1") else "INVALID_CONFIG"
    assert pair.errors("CreateTopics") == {"NONE", refused}
