"""Classic groups that cannot become consumer groups while members of theirs wait (KIP-848)."""

from __future__ import annotations

import pytest
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.group_world import beat, join, world
from ..support.world import World

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
