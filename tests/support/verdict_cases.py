"""For each rule of the verdict a client that keeps it (`right`), and one that breaks it."""

from __future__ import annotations

from collections.abc import Callable

from ottla.protocol import messages as m
from ottla.protocol.errors import Errors
from ottla.protocol.structs import Struct

from .verdict_script import Script, records

CASES: dict[str, Callable[[Script, bool], None]] = {}
TOPIC_ID = bytes(range(16))


def case(*ids: str) -> Callable[[Callable[[Script, bool], None]], Callable[[Script, bool], None]]:
    def register(made: Callable[[Script, bool], None]) -> Callable[[Script, bool], None]:
        CASES.update(dict.fromkeys(ids, made))
        return made

    return register


# versions and headers


def versions(s: Script, name: str = "apache-kafka-java") -> None:
    keys = [
        m.ApiVersionsResponse.ApiVersion(api_key=key, min_version=low, max_version=high)
        for key, low, high in ((0, 3, 13), (3, 0, 13), (18, 0, 4))
    ]
    request = m.ApiVersionsRequest(client_software_name=name, client_software_version="4.4.0")
    s.asks("ApiVersions", 4, request, m.ApiVersionsResponse(api_keys=keys))


def metadata(s: Script) -> None:
    p = m.MetadataResponse.MetadataResponsePartition(partition_index=0, leader_id=1, leader_epoch=3)
    topic = m.MetadataResponse.MetadataResponseTopic(name="t", topic_id=TOPIC_ID, partitions=[p])
    s.asks("Metadata", 12, m.MetadataRequest(topics=[]), m.MetadataResponse(topics=[topic]))


@case("KIP-35.api-versions-first")
def api_versions_first(s: Script, right: bool) -> None:
    s.opens()
    if right:
        versions(s)
    metadata(s)


@case("KIP-35.versions-within")
def versions_within(s: Script, right: bool) -> None:
    versions(s)
    s.asks("Metadata", 13, m.MetadataRequest(topics=[]), m.MetadataResponse())
    if not right:
        s.refused(3, 14)


@case("KIP-35.downgraded")
def downgraded(s: Script, right: bool) -> None:
    request = m.ApiVersionsRequest(client_software_name="c", client_software_version="1")
    refused = m.ApiVersionsResponse(error_code=Errors.UNSUPPORTED_VERSION)
    s.asks("ApiVersions", 4, request, refused)
    s.asks("ApiVersions", 0 if right else 4, request, m.ApiVersionsResponse())


@case("KIP-896.removed-versions")
def removed_versions(s: Script, right: bool) -> None:
    metadata(s)
    if not right:
        s.refused(1, 3)


@case("KIP-511.software-named")
def software_named(s: Script, right: bool) -> None:
    versions(s, name="librdkafka" if right else "-no-")


@case("protocol.correlation-ids")
def correlation_ids(s: Script, right: bool) -> None:
    for one in (8, 9 if right else 8):
        s.asks("Metadata", 12, m.MetadataRequest(topics=[]), m.MetadataResponse(), correlation_id=one)


@case("protocol.client-id")
def client_id(s: Script, right: bool) -> None:
    s.asks("Metadata", 12, m.MetadataRequest(), m.MetadataResponse(), client_id="c" if right else None)


# how often


@case("KIP-219.throttle-kept")
def throttle_kept(s: Script, right: bool) -> None:
    s.asks("Metadata", 12, m.MetadataRequest(), m.MetadataResponse(throttle_time_ms=500))
    s.asks("Metadata", 12, m.MetadataRequest(), m.MetadataResponse(), after_ms=500 if right else 400)


@case("KIP-580.back-off")
def back_off(s: Script, right: bool) -> None:
    failed = m.FindCoordinatorResponse.Coordinator(error_code=Errors.COORDINATOR_NOT_AVAILABLE)
    for _ in range(5):
        request = m.FindCoordinatorRequest(coordinator_keys=["g"])
        reply = m.FindCoordinatorResponse(coordinators=[failed])
        s.asks("FindCoordinator", 4, request, reply, after_ms=100 if right else 1)


# fetching


def fetched(
    s: Script,
    epoch: int = 0,
    session: int = 0,
    offset: int = 5,
    code: int = 0,
    leader: m.FetchResponse.LeaderIdAndEpoch | None = None,
    **given: float,
) -> None:
    r, a = m.FetchRequest, m.FetchResponse
    one = r.FetchPartition(partition=0, fetch_offset=offset, current_leader_epoch=int(given.get("leader_epoch", 3)))
    one.partition_max_bytes, one.last_fetched_epoch = 1000, int(given.get("fetched_epoch", -1))
    topics = [r.FetchTopic(topic_id=TOPIC_ID, partitions=[one])]
    request = r(session_id=session, session_epoch=epoch, topics=topics)
    got = a.PartitionData(partition_index=0, error_code=code)
    if leader is not None:
        got.current_leader = leader
    replied = a(session_id=9, responses=[a.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[got])])
    after_ms, connection = given.get("after_ms", 100), int(given.get("connection", 1))
    s.asks("Fetch", 13, request, replied, after_ms=after_ms, connection=connection)


@case("KIP-320.metadata-refreshed")
def metadata_refreshed(s: Script, right: bool) -> None:
    for _ in range(6):
        fetched(s, code=Errors.NOT_LEADER_OR_FOLLOWER, after_ms=600)
        if right:
            metadata(s)


@case("KIP-320.leader-epoch-sent")
def leader_epoch_sent(s: Script, right: bool) -> None:
    metadata(s)
    fetched(s, leader_epoch=3 if right else -1)


@case("KIP-227.epochs-in-order")
def epochs_in_order(s: Script, right: bool) -> None:
    fetched(s)
    fetched(s, 1, 9)
    fetched(s, 2 if right else 1, 9)


@case("KIP-227.session-closed")
def session_closed(s: Script, right: bool) -> None:
    fetched(s)
    if right:
        fetched(s, -1, 9)
    s.closes()
    if right:  # over another connection its broker does not answer any more
        fetched(s, connection=2)
        s.asks("Fetch", 13, m.FetchRequest(session_id=9, session_epoch=1, max_wait_ms=500), lost=True, connection=2)
        s.waits(30_000)
        s.closes(2)


@case("KIP-227.only-changes")
def only_changes(s: Script, right: bool) -> None:
    fetched(s)
    fetched(s, 1, 9, offset=6 if right else 5)


# producers


def produced(
    s: Script,
    data: bytes,
    code: int = 0,
    version: int = 11,
    acks: int = -1,
    transactional_id: str | None = None,
    after_ms: float = 100,
    waiting: list[int] | None = None,
    connection: int = 1,
) -> None:
    r, a = m.ProduceRequest, m.ProduceResponse
    topic = r.TopicProduceData(name="t", partition_data=[r.PartitionProduceData(index=0, records=data)])
    one = a.PartitionProduceResponse(index=0, error_code=code)
    reply = a(responses=[a.TopicProduceResponse(name="t", partition_responses=[one])])
    request = r(transactional_id=transactional_id, acks=acks, topic_data=[topic])
    s.asks("Produce", version, request, reply, after_ms=after_ms, waiting=waiting, connection=connection)


def initialized(s: Script, transactional_id: str | None = None, connection: int = 1) -> None:
    reply = m.InitProducerIdResponse(producer_id=7, producer_epoch=0)
    request = m.InitProducerIdRequest(transactional_id=transactional_id)
    s.asks("InitProducerId", 4, request, reply, connection=connection)


@case("KIP-98.sequences-in-order")
def sequences_in_order(s: Script, right: bool) -> None:
    initialized(s)
    produced(s, records(0, 3))
    produced(s, records(3 if right else 4, 1))


@case("KIP-98.five-in-flight")
def five_in_flight(s: Script, right: bool) -> None:
    for sequence in (0, 1, 2, 3, 4, 5, 1 if right else 0):
        produced(s, records(sequence))


@case("KIP-360.epoch-bumped")
def epoch_bumped(s: Script, right: bool) -> None:
    produced(s, records(0))
    produced(s, records(5), Errors.OUT_OF_ORDER_SEQUENCE_NUMBER)
    produced(s, records(0, epoch=1 if right else 0, time=1))


@case("KIP-98.init-first")
def init_first(s: Script, right: bool) -> None:
    s.opens()
    initialized(s, "tx")
    produced(s, records(0, producer_id=7 if right else 8, transactional=True), version=12)


@case("KIP-98.partitions-added")
def partitions_added(s: Script, right: bool) -> None:
    initialized(s, "tx")
    r = m.AddPartitionsToTxnRequest
    topic = r.AddPartitionsToTxnTopic(name="t", partitions=[0 if right else 1])
    request = r(v3_and_below_transactional_id="tx", v3_and_below_producer_id=7, v3_and_below_topics=[topic])
    s.asks("AddPartitionsToTxn", 3, request, m.AddPartitionsToTxnResponse())
    produced(s, records(0, transactional=True))


@case("KIP-98.offsets-added")
def offsets_added(s: Script, right: bool) -> None:
    initialized(s, "tx")
    request = m.AddOffsetsToTxnRequest(transactional_id="tx", producer_id=7, group_id="g" if right else "other")
    s.asks("AddOffsetsToTxn", 3, request, m.AddOffsetsToTxnResponse())
    commit = m.TxnOffsetCommitRequest(transactional_id="tx", group_id="g", producer_id=7)
    s.asks("TxnOffsetCommit", 4, commit, m.TxnOffsetCommitResponse())


@case("KIP-588.fenced-stops")
def fenced_stops(s: Script, right: bool) -> None:
    request = m.EndTxnRequest(transactional_id="tx", producer_id=7)
    s.asks("EndTxn", 4, request, m.EndTxnResponse(error_code=Errors.PRODUCER_FENCED))
    if not right:
        s.asks("EndTxn", 4, request, m.EndTxnResponse(error_code=Errors.PRODUCER_FENCED))


# classic groups


def joined(s: Script, member: str = "m", instance: str | None = None, code: int = 0, asked: str = "") -> None:
    request = m.JoinGroupRequest(
        group_id="g", member_id=asked, group_instance_id=instance, session_timeout_ms=10_000, protocol_type="consumer"
    )
    request.protocols = [m.JoinGroupRequest.JoinGroupRequestProtocol(name="range")]
    s.asks("JoinGroup", 9, request, m.JoinGroupResponse(error_code=code, member_id=member, generation_id=2))


def synced(s: Script) -> None:
    request = m.SyncGroupRequest(group_id="g", generation_id=2, member_id="m")
    s.asks("SyncGroup", 5, request, m.SyncGroupResponse())


def beats(
    s: Script, after_ms: float = 3000, generation: int = 2, instance: str | None = None, code: int = 0, *, over: int = 1
) -> None:
    request = m.HeartbeatRequest(group_id="g", generation_id=generation, member_id="m", group_instance_id=instance)
    s.asks("Heartbeat", 4, request, m.HeartbeatResponse(error_code=code), after_ms=after_ms, connection=over)


def left(s: Script) -> None:
    one = m.LeaveGroupRequest.MemberIdentity(member_id="m")
    s.asks("LeaveGroup", 5, m.LeaveGroupRequest(group_id="g", members=[one]), m.LeaveGroupResponse())


@case("KIP-394.member-id-kept")
def member_id_kept(s: Script, right: bool) -> None:
    joined(s, "m", code=Errors.MEMBER_ID_REQUIRED)
    joined(s, "m", asked="m" if right else "")


@case("KIP-345.static-id-sent")
def static_id_sent(s: Script, right: bool) -> None:
    joined(s, instance="i")
    beats(s, instance="i" if right else None)


@case("KIP-345.static-stays")
def static_stays(s: Script, right: bool) -> None:
    joined(s, instance="i")
    beats(s, instance="i")
    if not right:
        left(s)


@case("KIP-62.heartbeats-in-time")
def heartbeats_in_time(s: Script, right: bool) -> None:
    joined(s)
    beats(s)
    beats(s, after_ms=9_000 if right else 11_000)


@case("classic-group.generation-sent")
def generation_sent(s: Script, right: bool) -> None:
    joined(s)
    beats(s, after_ms=6000, generation=2 if right else 1)


@case("KIP-62.leaves-at-close")
def leaves_at_close(s: Script, right: bool) -> None:
    joined(s)
    synced(s)
    beats(s)
    if right:
        left(s)
    s.closes()


@case("protocol.coordinator-found-again")
def coordinator_found_again(s: Script, right: bool) -> None:
    for _ in range(6):
        beats(s, code=Errors.NOT_COORDINATOR)
        if right:
            s.asks("FindCoordinator", 4, m.FindCoordinatorRequest(), m.FindCoordinatorResponse())


# groups of KIP-848 and KIP-932


def heartbeat(s: Script, epoch: int, given: int, *, code: int = 0, connection: int = 1, **fields: object) -> None:
    values: dict[str, object] = {"group_id": "g", "member_id": "m", "member_epoch": epoch}
    if epoch == 0:
        values |= {"rebalance_timeout_ms": 5000, "subscribed_topic_names": ["t"], "topic_partitions": []}
    assignment, interval_ms = fields.pop("assignment", None), fields.pop("interval_ms", 5000)
    assert isinstance(interval_ms, int)
    request = m.ConsumerGroupHeartbeatRequest(**{**values, **fields})  # type: ignore[arg-type]
    reply = m.ConsumerGroupHeartbeatResponse(member_id="m", member_epoch=given, error_code=code)
    reply.heartbeat_interval_ms = interval_ms
    if assignment is not None:
        reply.assignment = m.ConsumerGroupHeartbeatResponse.Assignment(topic_partitions=_owned(reply, assignment))
    s.asks("ConsumerGroupHeartbeat", 1, request, reply, after_ms=3000, connection=connection)


def _owned(message: Struct, partitions: object) -> list[m.ConsumerGroupHeartbeatResponse.TopicPartitions]:
    assert isinstance(partitions, list)
    return [type(message).TopicPartitions(topic_id=TOPIC_ID, partitions=partitions)]  # type: ignore[attr-defined]


@case("KIP-848.epoch-echoed")
def epoch_echoed(s: Script, right: bool) -> None:
    heartbeat(s, 0, 4)
    heartbeat(s, 4 if right else 3, 4)


@case("KIP-1082.member-id-own")
def member_id_own(s: Script, right: bool) -> None:
    heartbeat(s, 0, 1, member_id="m" if right else "")


@case("KIP-848.rejoins-when-fenced")
def rejoins_when_fenced(s: Script, right: bool) -> None:
    heartbeat(s, 0, 1)
    heartbeat(s, 1, 0, code=Errors.FENCED_MEMBER_EPOCH)
    heartbeat(s, 0 if right else 1, 2)


@case("KIP-848.leaves-at-close")
def consumer_leaves(s: Script, right: bool) -> None:
    heartbeat(s, 0, 1)
    if right:
        heartbeat(s, -1, -1)
    s.closes()


@case("KIP-848.first-heartbeat-complete")
def first_heartbeat_complete(s: Script, right: bool) -> None:
    heartbeat(s, 0, 1, topic_partitions=[] if right else None)


@case("KIP-848.null-for-unchanged")
def null_for_unchanged(s: Script, right: bool) -> None:
    heartbeat(s, 0, 1)
    for _ in range(3):
        heartbeat(s, 1, 1, subscribed_topic_names=None if right else ["t"])


@case("KIP-848.revocation-told")
def revocation_told(s: Script, right: bool) -> None:
    heartbeat(s, 0, 1, assignment=[0, 1])
    heartbeat(s, 1, 1, assignment=[0])
    if right:
        owned = m.ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=TOPIC_ID, partitions=[0])
        heartbeat(s, 1, 2, topic_partitions=[owned])
    else:
        heartbeat(s, 1, 1)
        heartbeat(s, 1, 1)


def share_beat(
    s: Script,
    epoch: int,
    given: int,
    *,
    code: int = 0,
    member: str = "m",
    interval_ms: int = 5000,
    topics: list[str] | None = None,
) -> None:
    request = m.ShareGroupHeartbeatRequest(group_id="g", member_id=member, member_epoch=epoch)
    request.subscribed_topic_names = topics
    reply = m.ShareGroupHeartbeatResponse(member_id="m", member_epoch=given, error_code=code)
    reply.heartbeat_interval_ms = interval_ms
    s.asks("ShareGroupHeartbeat", 1, request, reply, after_ms=3000)


def share_fetched(s: Script, epoch: int, connection: int = 1, lost: bool = False) -> None:
    request = m.ShareFetchRequest(group_id="g", member_id="m", share_session_epoch=epoch, max_wait_ms=500)
    s.asks("ShareFetch", 1, request, m.ShareFetchResponse(), connection=connection, lost=lost)


@case("KIP-932.session-epochs")
def share_session_epochs(s: Script, right: bool) -> None:
    share_fetched(s, 0)
    request = m.ShareAcknowledgeRequest(group_id="g", member_id="m", share_session_epoch=1)
    s.asks("ShareAcknowledge", 1, request, m.ShareAcknowledgeResponse())
    share_fetched(s, 2 if right else 1)


@case("KIP-932.session-closed")
def share_session_closed(s: Script, right: bool) -> None:
    share_fetched(s, 0)
    if right:
        share_fetched(s, -1)
    s.closes()
    if right:
        share_fetched(s, 0, connection=2)
        share_fetched(s, 1, connection=2, lost=True)
        s.waits(30_000)
        s.closes(2)
