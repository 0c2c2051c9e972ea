"""Consumer groups where the static configuration leaves their protocol out."""

from __future__ import annotations

import pytest
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.differential import Pair, own_brokers
from ..support.stories.groups import beat_request
from ..support.stories.topics import versions

pytestmark = pytest.mark.slow
kafka, ours, coordinators = own_brokers({"group.coordinator.rebalance.protocols": "classic"})


def test_consumer_groups_are_an_unsupported_version(pair: Pair) -> None:
    for v in versions("ConsumerGroupHeartbeat"):
        for reply in pair.ask("ConsumerGroupHeartbeat", v, beat_request(v, "none", "member", 0)):
            assert (reply.error_code, reply.error_message) == (Errors.UNSUPPORTED_VERSION, None)
    for v in versions("ConsumerGroupDescribe"):
        for reply in pair.ask("ConsumerGroupDescribe", v, m.ConsumerGroupDescribeRequest(group_ids=["none"])):
            group = reply.groups[0]
            assert (group.error_code, group.error_message) == (Errors.UNSUPPORTED_VERSION, None)
