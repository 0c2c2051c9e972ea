"""Strings of the greatest length: taken where Kafka takes them; an error where a reply with them cannot be encoded."""

from __future__ import annotations

import pytest
from ottla.broker import bugs
from ottla.protocol import codec
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors, MalformedMessage

from ..support.group_world import beat, code, commit, fetched, join, world

LONGEST = 32767


@pytest.mark.parametrize("version", [5, 9])
def test_a_reply_with_a_string_that_is_too_long_is_an_error_and_no_bug(version: int) -> None:
    """A member id is the client's or the instance's id, and a UUID."""
    w = world()
    before = bugs.count()
    joined = join(w, version=version, group_instance_id="i" * LONGEST)
    w.pass_ms(300)
    reply = joined.reply
    assert (reply.error_code, reply.member_id) == (Errors.UNKNOWN_SERVER_ERROR, "")
    refused = beat(w, "m", 0, "t", server_assignor="a" * LONGEST)
    w.pass_ms(5)  # a large request has a turn of its own
    assert refused.reply.error_code == Errors.UNKNOWN_SERVER_ERROR
    assert bugs.count() == before


def test_ids_may_have_the_length_of_a_string() -> None:
    w = world()
    longest = "x" * LONGEST
    answers = [join(w, group_id=longest), beat(w, longest, 0, "t", rack_id=longest, instance_id=longest)]
    w.pass_ms(5)
    assert [answer.reply.error_code for answer in answers] == [Errors.MEMBER_ID_REQUIRED, 0]


def test_the_groups_of_commits_that_are_refused_go_with_the_next_cleanup() -> None:
    w = world()

    def groups() -> int:
        return sum(len(list(host.shard.groups.values())) for host in w.broker.groups.hosts.values())

    answers = [commit(w, 1, group=f"g{n}", metadata="x" * 5000) for n in range(10)]
    assert {code(answer) for answer in answers} == {Errors.OFFSET_METADATA_TOO_LARGE}
    assert groups() == 10
    w.pass_ms(w.broker.config["offsets.retention.check.interval.ms"])
    assert groups() == 0
    assert code(commit(w, 1, group="g0")) == 0
    assert fetched(w, "g0").committed_offset == 1


def test_a_longer_string_is_no_string() -> None:
    r = m.OffsetCommitRequest
    with pytest.raises(MalformedMessage, match="string of length 32768 is too long"):
        codec.build("OffsetCommitRequest", 9, r(group_id="x" * (LONGEST + 1)))
    data = bytes(codec.build("OffsetCommitRequest", 9, r(group_id="x" * LONGEST)))
    length, longer = b"\x80\x80\x02", b"\x81\x80\x02"  # of the group id, and one more
    assert data.startswith(length)
    with pytest.raises(MalformedMessage):
        codec.parse("OffsetCommitRequest", 9, longer + b"x" + data[len(length) :])
