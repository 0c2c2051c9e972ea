"""Lists of the static configuration in which values are repeated: Kafka drops them, with a warning (KIP-1161)."""

from __future__ import annotations

import pytest

from ..support.differential import Pair, own_brokers
from ..support.stories.core import describe
from ..support.stories.topics import creatable, create

pytestmark = pytest.mark.slow
GIVEN = {
    "log.cleanup.policy": "delete,compact,delete",
    "sasl.enabled.mechanisms": "PLAIN,PLAIN",
    "ssl.enabled.protocols": "TLSv1.3,TLSv1.2,TLSv1.3",
    "group.coordinator.rebalance.protocols": "classic,classic,consumer,share,streams",
    "group.consumer.assignors": "uniform,uniform",
    "sasl.kerberos.principal.to.local.rules": "DEFAULT,DEFAULT",
}
kafka, ours, coordinators = own_brokers(dict(GIVEN))


@pytest.mark.parametrize("key", GIVEN)
def test_a_list_is_shown_without_what_is_repeated(pair: Pair, key: str) -> None:
    left = ",".join(dict.fromkeys(GIVEN[key].split(",")))
    for reply in pair.ask("DescribeConfigs", 4, describe("1", kind=4, keys=[key], include_synonyms=True)):
        found = reply.results[0].configs[0]
        assert (found.value, found.synonyms[0].value) == (left, GIVEN[key])


def test_a_topic_has_the_list_without_what_is_repeated(pair: Pair) -> None:
    create(pair, creatable("listed"))
    pair.agree("DescribeConfigs", 4, describe("listed", keys=["cleanup.policy"]))
    for reply in pair.ask("DescribeConfigs", 4, describe("listed", keys=["cleanup.policy"], include_synonyms=True)):
        found = reply.results[0].configs[0]
        assert (found.value, found.synonyms[0].value) == ("delete,compact", GIVEN["log.cleanup.policy"])
