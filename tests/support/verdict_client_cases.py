"""For each rule about requests, connections and producers a client that keeps it (`right`), and one that breaks it."""

from __future__ import annotations

from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from .verdict_cases import case, fetched, initialized, metadata, produced, versions
from .verdict_script import Script, records

INSTANCE = bytes(range(1, 17))
ZSTD = 4

# what requests say


@case("KIP-482.known-tags")
def known_tags(s: Script, right: bool) -> None:
    request = m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name="t")])
    if not right:
        assert request.topics is not None
        request.topics[0].unknown_tags = [(99, b"\1\2")]
    s.asks("Metadata", 12, request, m.MetadataResponse())


@case("protocol.metadata-first")
def metadata_first(s: Script, right: bool) -> None:
    s.opens()
    versions(s)
    if right:
        metadata(s)
    fetched(s)


@case("protocol.no-replica")
def no_replica(s: Script, right: bool) -> None:
    request = m.ListOffsetsRequest(replica_id=-1 if right else 3)
    s.asks("ListOffsets", 7, request, m.ListOffsetsResponse())


@case("KIP-74.fetch-bounds")
def fetch_bounds(s: Script, right: bool) -> None:
    request = m.FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=1000 if right else 0)
    s.asks("Fetch", 12, request, m.FetchResponse())


@case("protocol.acks-valid")
def acks_valid(s: Script, right: bool) -> None:
    s.asks("Produce", 9, m.ProduceRequest(acks=1 if right else 2), m.ProduceResponse())


@case("KIP-98.batch-format")
def batch_format(s: Script, right: bool) -> None:
    produced(s, records(0) if right else b"\0" * 30)


@case("KIP-110.zstd-version")
def zstd_version(s: Script, right: bool) -> None:
    batch = bytearray(records(0))
    batch[22] |= ZSTD
    produced(s, bytes(batch), version=7 if right else 6)


@case("protocol.partitions-once")
def partitions_once(s: Script, right: bool) -> None:
    r = m.FetchRequest
    parts = [r.FetchPartition(partition=one) for one in (0, 1 if right else 0)]
    s.asks("Fetch", 12, r(topics=[r.FetchTopic(topic="t", partitions=parts)]), m.FetchResponse())


# connections


@case("KIP-144.reconnects-slowly")
def reconnects_slowly(s: Script, right: bool) -> None:
    for connection in range(11):
        s.opens(connection)
        s.asks("ApiVersions", 4, m.ApiVersionsRequest(), lost=True, connection=connection, after_ms=50 if right else 1)
        s.closes(connection)


@case("KIP-368.reauthenticated")
def reauthenticated(s: Script, right: bool) -> None:
    def authenticates(after_ms: float) -> None:
        s.asks("SaslHandshake", 1, m.SaslHandshakeRequest(), m.SaslHandshakeResponse(), after_ms=after_ms)
        s.asks("SaslAuthenticate", 2, m.SaslAuthenticateRequest(), m.SaslAuthenticateResponse(session_lifetime_ms=5000))

    authenticates(0)
    if right:
        authenticates(4000)
    s.asks("Metadata", 12, m.MetadataRequest(), m.MetadataResponse(), after_ms=4000 if right else 6000)


@case("KIP-152.tokens-framed")
def tokens_framed(s: Script, right: bool) -> None:
    s.asks("SaslHandshake", 1 if right else 0, m.SaslHandshakeRequest(mechanism="PLAIN"), m.SaslHandshakeResponse())


@case("KIP-1102.bootstraps-again")
def bootstraps_again(s: Script, right: bool) -> None:
    required = m.MetadataResponse(error_code=Errors.REBOOTSTRAP_REQUIRED)
    for connection in (1, 2) if right else (1, 1, 1, 1):
        s.asks("Metadata", 13, m.MetadataRequest(), required, connection=connection)


def is_lost(s: Script, connection: int, listener: str = "NODE", after_ms: float = 3000) -> None:
    """A connection that the broker closes before its first reply."""
    s.opens(connection, listener)
    s.asks("ApiVersions", 4, m.ApiVersionsRequest(), lost=True, connection=connection, after_ms=after_ms)
    s.closes(connection, "broker", "fault")


@case("KIP-899.bootstraps-again")
def starts_anew(s: Script, right: bool) -> None:
    for connection, listener in ((1, "GIVEN"), (2, "NODE")):
        s.opens(connection, listener)
        s.asks("ApiVersions", 4, m.ApiVersionsRequest(), m.ApiVersionsResponse(), connection=connection)
    for connection in range(3, 8):
        is_lost(s, connection)
        if right:
            s.opens(connection + 10, "GIVEN")
            s.asks("ApiVersions", 4, m.ApiVersionsRequest(), m.ApiVersionsResponse(), connection=connection + 10)


def is_led_on(s: Script, listener: str, connection: int, times: int = 1, after_ms: float = 3000) -> None:
    """A connection over which a client asks for the leader of a topic."""
    s.opens(connection, listener)
    topic = m.MetadataRequest.MetadataRequestTopic(name="t")
    for _ in range(times):
        found = m.MetadataRequest(topics=[topic]), m.MetadataResponse()
        s.asks("Metadata", 12, *found, connection=connection, after_ms=after_ms)


@case("KIP-302.all-addresses-tried")
def all_addresses_tried(s: Script, right: bool) -> None:
    """The client that breaks the rule only tries the first address."""
    is_led_on(s, "TO_SECOND", 1, times=1 if right else 5)
    if right:
        is_led_on(s, "AT_SECOND", 2)
    is_led_on(s, "TO_FIRST", 3)
    is_led_on(s, "AT_FIRST", 4)


@case("protocol.closed-while-idle")
def closed_while_idle(s: Script, right: bool) -> None:
    produced(s, records(0))
    s.closes(1, "broker", "idle")
    produced(s, records(1 if right else 0), connection=2)


@case("protocol.closes-idle")
def closes_idle(s: Script, right: bool) -> None:
    metadata(s)
    s.waits(9 * 60_000)
    s.closes(1, *(("client",) if right else ("broker", "idle")))
    s.asks("Metadata", 12, m.MetadataRequest(), m.MetadataResponse(), connection=2, after_ms=1000)


@case("KIP-98.in-flight-limit")
def in_flight_limit(s: Script, right: bool) -> None:
    produced(s, records(0), waiting=[0, 3, 0, 0, 0] if right else [0, 0, 0, 0, 0])


# metadata and fetching


@case("KIP-516.topic-id-known")
def topic_id_known(s: Script, right: bool) -> None:
    s.opens()
    versions(s)
    if right:
        metadata(s)
    fetched(s)


@case("KIP-951.leader-taken")
def leader_taken(s: Script, right: bool) -> None:
    a = m.FetchResponse
    fetched(s, code=Errors.NOT_LEADER_OR_FOLLOWER, leader=a.LeaderIdAndEpoch(leader_id=1, leader_epoch=4))
    fetched(s, leader_epoch=4 if right else 3, after_ms=6000)


@case("KIP-227.session-restarted")
def session_restarted(s: Script, right: bool) -> None:
    fetched(s)
    request = m.FetchRequest(session_id=9, session_epoch=1)
    s.asks("Fetch", 13, request, m.FetchResponse(error_code=Errors.FETCH_SESSION_ID_NOT_FOUND))
    fetched(s, 0 if right else 2, 0 if right else 9)


@case("protocol.out-of-range-reset")
def out_of_range_reset(s: Script, right: bool) -> None:
    for _ in range(5):
        fetched(s, code=Errors.OFFSET_OUT_OF_RANGE)
        if right:
            s.asks("ListOffsets", 7, m.ListOffsetsRequest(), m.ListOffsetsResponse())


@case("KIP-320.truncation-found")
def truncation_found(s: Script, right: bool) -> None:
    metadata(s)
    fetched(s, offset=5)
    asks_for_end(s)
    fetched(s, offset=4 if right else 5)


def asks_for_end(s: Script) -> None:
    """The log ends at 4 in the epoch of the client."""
    r, a = m.OffsetForLeaderEpochRequest, m.OffsetForLeaderEpochResponse
    asked = r.OffsetForLeaderPartition(partition=0, current_leader_epoch=4, leader_epoch=3)
    ends = a.EpochEndOffset(partition=0, leader_epoch=3, end_offset=4)
    request = r(replica_id=-1, topics=[r.OffsetForLeaderTopic(topic="t", partitions=[asked])])
    s.asks("OffsetForLeaderEpoch", 4, request, a(topics=[a.OffsetForLeaderTopicResult(topic="t", partitions=[ends])]))


# telemetry


def subscribed(s: Script, connection: int = 1) -> None:
    reply = m.GetTelemetrySubscriptionsResponse(
        client_instance_id=INSTANCE, subscription_id=5, push_interval_ms=10_000, accepted_compression_types=[4]
    )
    s.asks("GetTelemetrySubscriptions", 0, m.GetTelemetrySubscriptionsRequest(), reply, connection=connection)


def pushes(
    s: Script,
    instance: bytes = INSTANCE,
    subscription: int = 5,
    codec: int = 4,
    after_ms: float = 9000,
    code: int = 0,
    connection: int = 1,
) -> None:
    request = m.PushTelemetryRequest(
        client_instance_id=instance, subscription_id=subscription, compression_type=codec, metrics=b"m"
    )
    reply = m.PushTelemetryResponse(error_code=code)
    s.asks("PushTelemetry", 0, request, reply, after_ms=after_ms, connection=connection)


@case("KIP-714.instance-id-kept")
def instance_id_kept(s: Script, right: bool) -> None:
    s.opens()
    subscribed(s)
    pushes(s, instance=INSTANCE if right else bytes(16))


@case("KIP-714.subscription-sent")
def subscription_sent(s: Script, right: bool) -> None:
    subscribed(s)
    pushes(s, subscription=5 if right else 4)


@case("KIP-714.compression-accepted")
def compression_accepted(s: Script, right: bool) -> None:
    subscribed(s)
    pushes(s, codec=4 if right else 2)


@case("KIP-714.interval-kept")
def telemetry_interval_kept(s: Script, right: bool) -> None:
    subscribed(s)
    pushes(s)
    pushes(s, after_ms=6000 if right else 1000)


@case("KIP-714.subscribes-again")
def subscribes_again(s: Script, right: bool) -> None:
    subscribed(s)
    pushes(s, code=Errors.UNKNOWN_SUBSCRIPTION_ID)
    if right:
        request = m.GetTelemetrySubscriptionsRequest(client_instance_id=INSTANCE)
        s.asks("GetTelemetrySubscriptions", 0, request, m.GetTelemetrySubscriptionsResponse())
    pushes(s)


# idempotent producers


@case("KIP-98.acks-all")
def acks_all(s: Script, right: bool) -> None:
    produced(s, records(0), acks=-1 if right else 1)


@case("KIP-98.producer-id-own")
def producer_id_own(s: Script, right: bool) -> None:
    s.opens()
    initialized(s)
    produced(s, records(0, producer_id=7 if right else 8))


@case("KIP-98.batch-unchanged")
def batch_unchanged(s: Script, right: bool) -> None:
    produced(s, records(0, 3), Errors.REQUEST_TIMED_OUT)
    produced(s, records(0, 3 if right else 4))


@case("KIP-360.epoch-rises")
def epoch_rises(s: Script, right: bool) -> None:
    produced(s, records(0, epoch=1))
    produced(s, records(0, epoch=2 if right else 0))


@case("KIP-98.refused-not-repeated")
def refused_not_repeated(s: Script, right: bool) -> None:
    produced(s, records(0, 3), Errors.INVALID_RECORD)
    produced(s, records(0, 3, epoch=1 if right else 0))


@case("KIP-580.backs-off-more")
def backs_off_more(s: Script, right: bool) -> None:
    for after_ms in (100, 100, 200, 400, 800) if right else (100,) * 5:
        produced(s, records(0), Errors.NOT_LEADER_OR_FOLLOWER, after_ms=after_ms)


# transactions


def ended(s: Script, committed: bool = True, epoch: int = 0, code: int = 0, given: int = -1, version: int = 5) -> None:
    request = m.EndTxnRequest(transactional_id="tx", producer_id=7, producer_epoch=epoch, committed=committed)
    reply = m.EndTxnResponse(error_code=code, producer_id=7 if given >= 0 else -1, producer_epoch=given)
    s.asks("EndTxn", version, request, reply)


def writes(s: Script, sequence: int = 0, code: int = 0, epoch: int = 0) -> None:
    produced(s, records(sequence, transactional=True, epoch=epoch), code, version=12, transactional_id="tx")


@case("KIP-98.transactional-flag")
def transactional_flag(s: Script, right: bool) -> None:
    initialized(s, "tx")
    produced(s, records(0, transactional=right), version=12)


@case("KIP-98.transactional-id-sent")
def transactional_id_sent(s: Script, right: bool) -> None:
    produced(s, records(0, transactional=True), version=12, transactional_id="tx" if right else None)


@case("KIP-360.own-epoch-named")
def own_epoch_named(s: Script, right: bool) -> None:
    initialized(s, "tx")
    request = m.InitProducerIdRequest(transactional_id="tx", producer_id=7, producer_epoch=0 if right else 3)
    s.asks("InitProducerId", 4, request, m.InitProducerIdResponse(producer_id=7, producer_epoch=1))


@case("KIP-447.member-named")
def member_named(s: Script, right: bool) -> None:
    request = m.TxnOffsetCommitRequest(transactional_id="tx", group_id="g", producer_id=7)
    if right:
        request.member_id, request.generation_id_or_member_epoch = "m", 3
    s.asks("TxnOffsetCommit", 4, request, m.TxnOffsetCommitResponse())


@case("KIP-890.aborts-after-abortable")
def aborts_after_abortable(s: Script, right: bool) -> None:
    writes(s, code=Errors.TRANSACTION_ABORTABLE)
    ended(s, committed=not right)


@case("KIP-1050.fatal-stops")
def fatal_stops(s: Script, right: bool) -> None:
    ended(s, code=Errors.INVALID_TXN_STATE)
    writes(s)  # may have been sent before that arrived
    if not right:
        s.waits(1000)
        writes(s, 1)


@case("KIP-890.epoch-taken")
def epoch_taken(s: Script, right: bool) -> None:
    ended(s, given=1)
    writes(s, epoch=1 if right else 0)


@case("KIP-98.no-empty-commit")
def no_empty_commit(s: Script, right: bool) -> None:
    initialized(s, "tx")
    if right:
        writes(s)
    ended(s, version=4)


@case("KIP-98.commit-after-writes")
def commit_after_writes(s: Script, right: bool) -> None:
    writes(s)
    writes(s, 1, Errors.NOT_LEADER_OR_FOLLOWER)
    if right:
        writes(s, 1)
    ended(s)


@case("KIP-890.no-adding")
def no_adding(s: Script, right: bool) -> None:
    writes(s)
    if not right:
        r = m.AddPartitionsToTxnRequest
        request = r(v3_and_below_transactional_id="tx", v3_and_below_producer_id=7)
        s.asks("AddPartitionsToTxn", 3, request, m.AddPartitionsToTxnResponse())
