"""For each rule about members of groups a client that keeps it (`right`), and one that breaks it."""

from __future__ import annotations

from ottla.protocol import codec
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from .verdict_cases import TOPIC_ID, beats, case, heartbeat, joined, share_beat, share_fetched
from .verdict_script import Script

# classic groups


def embedded(name: str, message: m.ConsumerProtocolSubscription | m.ConsumerProtocolAssignment) -> bytes:
    return b"\0\1" + bytes(codec.build(name, 1, message))


def joins(
    s: Script,
    owned: tuple[int, ...] = (),
    *,
    leader: str = "m",
    skips: bool = False,
    protocols: tuple[str, ...] = ("range",),
    after_ms: float = 100,
    connection: int = 1,
) -> None:
    r, a = m.JoinGroupRequest, m.JoinGroupResponse
    u = m.ConsumerProtocolSubscription
    told = u(topics=["t"], owned_partitions=[u.TopicPartition(topic="t", partitions=list(owned))])
    data = embedded("ConsumerProtocolSubscription", told)
    offered = [r.JoinGroupRequestProtocol(name=one, metadata=data) for one in protocols]
    request = r(group_id="g", member_id="m", protocol_type="consumer", protocols=offered)
    request.session_timeout_ms = request.rebalance_timeout_ms = 10_000
    members = [a.JoinGroupResponseMember(member_id=one) for one in ("m", "n")] if leader == "m" else []
    reply = a(generation_id=2, protocol_type="consumer", protocol_name="range", leader=leader, member_id="m")
    reply.members, reply.skip_assignment = members, skips
    s.asks("JoinGroup", 9, request, reply, after_ms=after_ms, connection=connection)


def syncs(
    s: Script,
    given: tuple[int, ...] = (),
    assigned: tuple[str, ...] = (),
    protocol: str = "range",
    connection: int = 1,
) -> None:
    r, u = m.SyncGroupRequest, m.ConsumerProtocolAssignment
    request = r(group_id="g", generation_id=2, member_id="m", protocol_type="consumer", protocol_name=protocol)
    request.assignments = [r.SyncGroupRequestAssignment(member_id=one) for one in assigned]
    message = u(assigned_partitions=[u.TopicPartition(topic="t", partitions=list(given))])
    data = embedded("ConsumerProtocolAssignment", message)
    reply = m.SyncGroupResponse(protocol_type="consumer", protocol_name="range", assignment=data)
    s.asks("SyncGroup", 5, request, reply, connection=connection)


def commits(s: Script, partition: int, epoch: int = 2, after_ms: float = 100, connection: int = 1) -> None:
    r = m.OffsetCommitRequest
    one = r.OffsetCommitRequestPartition(partition_index=partition, committed_offset=5)
    topics = [r.OffsetCommitRequestTopic(name="t", partitions=[one])]
    request = r(group_id="g", generation_id_or_member_epoch=epoch, member_id="m", topics=topics)
    s.asks("OffsetCommit", 9, request, m.OffsetCommitResponse(), after_ms=after_ms, connection=connection)


@case("KIP-429.claims-own")
def claims_own(s: Script, right: bool) -> None:
    joins(s)
    syncs(s, (0, 1))
    joins(s, (0, 1 if right else 2))


@case("KIP-429.rejoins-after-revocation")
def rejoins_after_revocation(s: Script, right: bool) -> None:
    joins(s, (0, 1))
    syncs(s, (0,))
    if right:
        joins(s, (0,))
    beats(s, after_ms=11_000)


@case("KIP-429.commits-before-revoke")
def commits_before_revoke(s: Script, right: bool) -> None:
    joins(s)
    syncs(s, (0, 1))
    commits(s, 1)
    if not right:
        joins(s, (0,))
        joins(s, (0,))  # the coordinator may ask for it again
    commits(s, 1)
    joins(s, (0,))
    syncs(s, (0,))
    commits(s, 0)
    joins(s, (0,))
    syncs(s, (0, 1))  # it has the other one again
    commits(s, 1)


@case("classic-group.each-member-assigned")
def each_member_assigned(s: Script, right: bool) -> None:
    joins(s)
    syncs(s, assigned=("m", "n" if right else "o"))


@case("classic-group.leader-assigns")
def leader_assigns(s: Script, right: bool) -> None:
    joins(s, leader="n")
    syncs(s, assigned=() if right else ("m",))


@case("KIP-814.assignment-skipped")
def assignment_skipped(s: Script, right: bool) -> None:
    joins(s, skips=True)
    syncs(s, assigned=() if right else ("m", "n"))


@case("KIP-559.protocol-sent")
def protocol_sent(s: Script, right: bool) -> None:
    joins(s)
    syncs(s, protocol="range" if right else "sticky")


@case("classic-group.protocols-complete")
def protocols_complete(s: Script, right: bool) -> None:
    joins(s, protocols=("range", "sticky") if right else ("range", "range"))


@case("classic-group.commits-own")
def commits_own(s: Script, right: bool) -> None:
    joins(s)
    syncs(s, (0, 1))
    commits(s, 1 if right else 2)


@case("classic-group.rejoins-in-time")
def rejoins_in_time(s: Script, right: bool) -> None:
    joins(s)
    beats(s, code=Errors.REBALANCE_IN_PROGRESS)
    if right:
        joins(s, after_ms=5000)
    beats(s, after_ms=16_000)


@case("classic-group.new-id-when-unknown")
def new_id_when_unknown(s: Script, right: bool) -> None:
    joined(s)
    beats(s, code=Errors.UNKNOWN_MEMBER_ID)
    beats(s, after_ms=2000, code=Errors.UNKNOWN_MEMBER_ID)
    s.waits(6000)
    joined(s, asked="" if right else "m")


@case("KIP-345.fenced-stops")
def fenced_instance_stops(s: Script, right: bool) -> None:
    joined(s, instance="i")
    beats(s, instance="i", code=Errors.FENCED_INSTANCE_ID)
    if not right:
        beats(s, after_ms=6000, instance="i")


# consumer groups


def owns(*partitions: int) -> list[m.ConsumerGroupHeartbeatRequest.TopicPartitions]:
    return [m.ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=TOPIC_ID, partitions=list(partitions))]


@case("KIP-848.heartbeats-in-time")
def consumer_heartbeats_in_time(s: Script, right: bool) -> None:
    heartbeat(s, 0, 1, interval_ms=5000)
    s.waits(0 if right else 20_000)
    heartbeat(s, 1, 1, interval_ms=5000)


@case("KIP-848.owns-assigned")
def owns_assigned(s: Script, right: bool) -> None:
    heartbeat(s, 0, 1, assignment=[0, 1])
    heartbeat(s, 1, 1, topic_partitions=owns(0, 1) if right else owns(0, 2))


@case("KIP-848.assignment-told")
def assignment_told(s: Script, right: bool) -> None:
    heartbeat(s, 0, 1, assignment=[0, 1])
    for _ in range(2):
        heartbeat(s, 1, 1, topic_partitions=owns(0, 1) if right else None)


@case("KIP-848.static-leaves-for-now")
def static_leaves_for_now(s: Script, right: bool) -> None:
    heartbeat(s, 0, 1, instance_id="i")
    heartbeat(s, -2 if right else -1, -1, instance_id="i")


@case("KIP-848.refused-stops")
def refused_stops(s: Script, right: bool) -> None:
    for _ in range(1 if right else 3):
        heartbeat(s, 0, 0, code=Errors.UNSUPPORTED_ASSIGNOR)


@case("KIP-848.commit-epoch")
def commit_epoch(s: Script, right: bool) -> None:
    heartbeat(s, 0, 4)
    commits(s, 0, 4 if right else 3, after_ms=6000)


@case("KIP-1082.member-id-kept")
def consumer_member_id_kept(s: Script, right: bool) -> None:
    heartbeat(s, 0, 1)
    heartbeat(s, 1, 0, code=Errors.FENCED_MEMBER_EPOCH)
    heartbeat(s, 0, 1, member_id="m" if right else "n")


# share groups


@case("KIP-932.epoch-echoed")
def share_epoch_echoed(s: Script, right: bool) -> None:
    share_beat(s, 0, 4)
    share_beat(s, 4 if right else 3, 4)


@case("KIP-932.member-id-own")
def share_member_id_own(s: Script, right: bool) -> None:
    share_beat(s, 0, 1, member="m" if right else "")


@case("KIP-932.rejoins-when-fenced")
def share_rejoins(s: Script, right: bool) -> None:
    share_beat(s, 1, 0, code=Errors.UNKNOWN_MEMBER_ID)
    share_beat(s, 0 if right else 1, 2)


@case("KIP-932.leaves-at-close")
def share_leaves(s: Script, right: bool) -> None:
    share_beat(s, 0, 1)
    if right:
        share_beat(s, -1, -1)
    s.closes()


def acknowledges(
    s: Script, *ranges: tuple[int, int], types: tuple[int, ...] = (1,), epoch: int = 1, renews: bool = False
) -> None:
    r = m.ShareAcknowledgeRequest
    batches = [r.AcknowledgementBatch(first_offset=a, last_offset=b, acknowledge_types=list(types)) for a, b in ranges]
    part = r.AcknowledgePartition(partition_index=0, acknowledgement_batches=batches)
    request = r(group_id="g", member_id="m", share_session_epoch=epoch, is_renew_ack=renews)
    request.topics = [r.AcknowledgeTopic(topic_id=TOPIC_ID, partitions=[part])]
    s.asks("ShareAcknowledge", 2, request, m.ShareAcknowledgeResponse())


def acquires(s: Script, *ranges: tuple[int, int], epoch: int = 0, acknowledged: bool = False) -> None:
    r, a = m.ShareFetchRequest, m.ShareFetchResponse
    request = r(group_id="g", member_id="m", share_session_epoch=epoch, max_records=10)
    if acknowledged:
        batch = r.AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=[1])
        part = r.FetchPartition(acknowledgement_batches=[batch])
        request.topics = [r.FetchTopic(topic_id=TOPIC_ID, partitions=[part])]
    got = [a.AcquiredRecords(first_offset=first, last_offset=last, delivery_count=1) for first, last in ranges]
    data = a.PartitionData(partition_index=0, records=b"x" * 70, acquired_records=got)
    reply = a(acquisition_lock_timeout_ms=30_000)
    reply.responses = [a.ShareFetchableTopicResponse(topic_id=TOPIC_ID, partitions=[data])]
    s.asks("ShareFetch", 2, request, reply)


@case("KIP-932.acknowledge-types")
def acknowledge_types(s: Script, right: bool) -> None:
    acknowledges(s, (0, 1), types=(1, 3 if right else 5))


@case("KIP-932.acknowledgements-in-order")
def acknowledgements_in_order(s: Script, right: bool) -> None:
    acknowledges(s, (3, 4), (5, 6) if right else (4, 6))


@case("KIP-932.acknowledges-acquired")
def acknowledges_acquired(s: Script, right: bool) -> None:
    acquires(s, (0, 4), (10, 14))
    acquires(s, (5, 7), epoch=1)
    acknowledges(s, (2, 7), (10, 14 if right else 15), epoch=2)


@case("KIP-932.new-session-plain")
def new_session_plain(s: Script, right: bool) -> None:
    acquires(s, (0, 4), acknowledged=not right)


@case("KIP-932.session-restarted")
def share_session_restarted(s: Script, right: bool) -> None:
    share_fetched(s, 0)
    request = m.ShareFetchRequest(group_id="g", member_id="m", share_session_epoch=1)
    s.asks("ShareFetch", 1, request, m.ShareFetchResponse(error_code=Errors.SHARE_SESSION_NOT_FOUND))
    share_fetched(s, 0 if right else 2)


@case("KIP-1222.renewal-marked")
def renewal_marked(s: Script, right: bool) -> None:
    acknowledges(s, (0, 1), types=(4,), renews=right)


@case("KIP-1222.renews-in-time")
def renews_in_time(s: Script, right: bool) -> None:
    acquires(s, (0, 4))
    s.waits(20_000 if right else 40_000)
    acknowledges(s, (0, 1), types=(4,), renews=True)


@case("KIP-932.heartbeats-in-time")
def share_heartbeats_in_time(s: Script, right: bool) -> None:
    share_beat(s, 0, 1, interval_ms=5000)
    s.waits(0 if right else 20_000)
    share_beat(s, 1, 1)


@case("KIP-932.first-heartbeat-complete")
def share_first_heartbeat(s: Script, right: bool) -> None:
    share_beat(s, 0, 1, topics=["t"] if right else None)


@case("KIP-932.null-for-unchanged")
def share_null_for_unchanged(s: Script, right: bool) -> None:
    share_beat(s, 0, 1, topics=["t"])
    for _ in range(3):
        share_beat(s, 1, 1, topics=None if right else ["t"])
