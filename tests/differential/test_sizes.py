"""What is beyond the size of a group, and beyond the share sessions: the same errors and words as Kafka's."""

from __future__ import annotations

import pytest
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.differential import Pair, own_brokers
from ..support.stories.groups import beat_request, first_beat, group_topic, join_request

pytestmark = pytest.mark.slow
kafka, ours, coordinators = own_brokers(
    {
        "group.max.size": 1,
        "group.consumer.max.size": 1,
        "group.share.max.size": 1,
        "group.share.max.share.sessions": 1,
        "group.initial.rebalance.delay.ms": 0,
    }
)
FULL = int(Errors.GROUP_MAX_SIZE_REACHED)


def test_members_beyond_the_size_of_a_consumer_group(pair: Pair) -> None:
    group_topic(pair, "consumed", 1)
    first_beat(pair, "consumer", "m1", ["consumed"])
    beyond = lambda s: beat_request(  # noqa: E731
        1, "consumer", "m2", 0, rebalance_timeout_ms=30_000, subscribed_topic_names=["consumed"], topic_partitions=[]
    )
    assert pair.both("ConsumerGroupHeartbeat", 1, beyond)[0].error_code == FULL


@pytest.mark.parametrize("version", [3, 9])
def test_members_beyond_the_size_of_a_classic_group(pair: Pair, version: int) -> None:
    group = f"classic-{version}"

    def join(at: Pair, ids: tuple[str, str]) -> tuple[int, tuple[str, str]]:
        mine, other = at.both("JoinGroup", version, lambda s: join_request(version, group, ids[s]))
        return mine.error_code, (mine.member_id, other.member_id)

    code, ids = join(pair, ("", ""))
    if code == Errors.MEMBER_ID_REQUIRED:
        code, ids = join(pair, ids)
    assert code == 0
    second = pair.beside("second")
    assert join(second, ("", ""))[0] == FULL
    second.close()


def test_members_and_sessions_beyond_those_of_share_groups(pair: Pair) -> None:
    group_topic(pair, "shared", 1)
    ids = [f"AAAAAAAAAAAAAAAAAAAAA{letter}" for letter in "AB"]
    beats = [
        m.ShareGroupHeartbeatRequest(group_id="s", member_id=one, subscribed_topic_names=["shared"]) for one in ids
    ]
    found = [pair.ask("ShareGroupHeartbeat", 1, one)[0].error_code for one in beats]
    assert found == [0, FULL]
    f = m.ShareFetchRequest
    second = pair.beside("second")
    for member, connection in zip(ids, (pair, second), strict=True):
        asked = f(group_id="s", member_id=member, share_session_epoch=0, max_bytes=1000, max_records=10, batch_size=10)
        mine, _ = connection.ask("ShareFetch", 1, asked)
    second.close()
    assert mine.error_code == Errors.SHARE_SESSION_LIMIT_REACHED
