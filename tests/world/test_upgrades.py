"""Classic groups that cannot become consumer groups (KIP-848), or whose record cannot be written, while members of
theirs wait.
"""

from __future__ import annotations

import pytest
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.failing_appends import fail_appends
from ..support.group_world import beat, join, shard, sync, world
from ..support.world import Answer, World

SUBSCRIPTION = b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"


def protocols(*names: str, metadata: bytes = SUBSCRIPTION) -> list[m.JoinGroupRequest.JoinGroupRequestProtocol]:
    return [m.JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=metadata) for name in names]


def state(w: World) -> str:
    (group,) = w.ask("DescribeGroups", 5, m.DescribeGroupsRequest(groups=["g"])).groups
    return str(group.group_state)


@pytest.mark.parametrize(
    ("metadata", "error", "words"),
    [
        (SUBSCRIPTION, Errors.UNKNOWN_SERVER_ERROR, None),
        (
            b"junk",
            Errors.GROUP_ID_NOT_FOUND,
            "Cannot upgrade classic group g to consumer group because the embedded consumer protocol is malformed.",
        ),
    ],
)
def test_who_waits_is_told_to_join_again(metadata: bytes, error: int, words: str | None) -> None:
    """The second member does not know the protocol of the generation that ends, or no one can read what the first says
    with it.
    """
    w = world()
    join(w, version=7, group_instance_id="i1", protocols=protocols("sticky", "range", metadata=metadata))
    w.pass_ms(1000)
    second = join(w, version=7, group_instance_id="i2", protocols=protocols("range"))
    assert not second.done
    refused = beat(w, "m", 0, "t").reply
    assert (refused.error_code, refused.error_message) == (error, words)
    assert second.reply.error_code == Errors.REBALANCE_IN_PROGRESS
    assert state(w) == "PreparingRebalance"


def test_a_group_without_a_first_generation_has_no_protocol() -> None:
    w = world()
    first = join(w, version=7, group_instance_id="i1", protocols=protocols("range"))
    assert not first.done
    assert beat(w, "m", 0, "t").reply.error_code == Errors.UNKNOWN_SERVER_ERROR
    assert first.reply.error_code == Errors.REBALANCE_IN_PROGRESS
    assert state(w) == "PreparingRebalance"


def rebalancing(w: World) -> Answer:
    """A classic group in which the second member waits until the first joins again."""
    join(w, version=7, group_instance_id="i1", protocols=protocols("range"))
    w.pass_ms(1000)
    second = join(w, version=7, group_instance_id="i2", protocols=protocols("range"))
    assert not second.done
    return second


def can_go_on(w: World) -> None:
    """Both members join again, and the group has its next generation."""
    assert state(w) == "PreparingRebalance"
    again = [join(w, version=7, group_instance_id=name, protocols=protocols("range")) for name in ("i1", "i2")]
    assert [(one.reply.error_code, one.reply.generation_id) for one in again] == [(0, 2)] * 2


def test_who_waits_is_told_to_join_again_by_an_upgrade_that_cannot_be_written() -> None:
    """As in Kafka, which answers before it appends."""
    w = world()
    second = rebalancing(w)
    fail_appends(w, *(host.partition for host in w.broker.groups.hosts.values()))
    assert beat(w, "m", 0, "t").reply.error_code == Errors.NOT_COORDINATOR
    assert second.reply.error_code == Errors.REBALANCE_IN_PROGRESS
    fail_appends(w)
    can_go_on(w)


@pytest.mark.parametrize(
    ("size_max", "expression", "error"),
    [
        ("3", "[", Errors.INVALID_REGULAR_EXPRESSION),
        ("2", None, Errors.GROUP_MAX_SIZE_REACHED),
    ],
)
def test_who_waits_is_told_to_join_again_by_an_upgrade_whose_member_is_refused(
    size_max: str, expression: str | None, error: int
) -> None:
    w = world(group_consumer_max_size=size_max)
    second = rebalancing(w)
    assert beat(w, "m", 0, "t", subscribed_topic_regex=expression).reply.error_code == error
    assert second.reply.error_code == Errors.REBALANCE_IN_PROGRESS
    assert not [timer.key for timer in shard(w).timers if timer.key[0] == "session"], "of a consumer group"
    can_go_on(w)


def test_who_waits_to_sync_is_told_to_join_again_by_an_upgrade_that_cannot_be_written() -> None:
    w = world()
    joined = [join(w, version=7, group_instance_id=name, protocols=protocols("range")) for name in ("i1", "i2")]
    w.pass_ms(1000)
    first, second = (one.reply for one in joined)
    waiting = sync(w, second.member_id, second.generation_id)
    assert first.leader == first.member_id
    assert not waiting.done
    fail_appends(w, *(host.partition for host in w.broker.groups.hosts.values()))
    assert beat(w, "m", 0, "t").reply.error_code == Errors.NOT_COORDINATOR
    assert waiting.reply.error_code == Errors.REBALANCE_IN_PROGRESS


def test_an_assignment_that_is_too_large_lets_all_join_again() -> None:
    """No record of the group can hold it."""
    w = world()
    joined = [join(w, version=7, group_instance_id=name, protocols=protocols("range")) for name in ("i1", "i2")]
    w.pass_ms(1000)
    first, second = (one.reply for one in joined)
    waiting = sync(w, second.member_id, 1)
    large = {first.member_id: bytes(1 << 20), second.member_id: b"some"}
    refused = sync(w, first.member_id, 1, **large)
    w.pass_ms(1)  # so large a request takes several steps
    assert refused.reply.error_code == Errors.UNKNOWN_SERVER_ERROR
    assert waiting.reply.error_code == Errors.UNKNOWN_SERVER_ERROR
    can_go_on(w)
