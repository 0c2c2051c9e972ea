"""What a broker that emulates an earlier release answers (`ottla.emulate`)."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import Any

import pytest
from ottla.broker.apis import apis
from ottla.broker.config.config import RELEASES, Config
from ottla.broker.emulation.error_codes import INSTEAD, ErrorCodes
from ottla.broker.emulation.releases import releases
from ottla.broker.net.dispatch import Dispatcher, Refused
from ottla.broker.shards.loader import log_entries
from ottla.broker.transaction.coordinators import TOPIC_NAME
from ottla.protocol import codec, legacy, records, schema
from ottla.protocol import messages as m
from ottla.protocol.compression import GZIP, NONE
from ottla.protocol.errors import CODES, Errors
from ottla.protocol.legacy import Message
from ottla.protocol.trees import tree

from ..support import transaction_world
from ..support.ask import fetch_message, produce_message
from ..support.emulated import fetched, messages_in, put, sent, with_topic, world_of
from ..support.everyday import ask_everyday, everyday_world
from ..support.generate import Generator
from ..support.sources import ROOT
from ..support.topic_world import create, produced, read, set_policy
from ..support.world import World


def test_the_releases_are_those_of_the_configuration() -> None:
    assert tuple(releases()) == RELEASES


def test_the_last_release_is_what_the_broker_is() -> None:
    world = World()
    present, last = apis(False), releases()[RELEASES[-1]]
    assert world.dispatcher.apis is present
    for key, api in present.items():
        assert last.apis[key] == (api.low, api.high), api.name


# Without emulation it costs nothing: none of its modules is imported, and no request looks whether there is one.
START = """
import sys
from ottla.broker.config import sources
from ottla.served import served_by
import ottla.broker.net.server
served_by(sources.build([]))
"""
REQUESTS = """
import sys
from tests.support.everyday import ask_everyday, everyday_world
ask_everyday(everyday_world())
"""
FOUND = """
ours = [name for name in sys.modules if name.startswith("ottla.")]
only = ("ottla.broker.emulation", "ottla.broker.zookeeper", "ottla.protocol.conversion", "ottla.protocol.lz4_frames")
print(len(ours) > 100, [name for name in ours if name.startswith(only)])
"""


@pytest.mark.long
@pytest.mark.parametrize("program", [START, REQUESTS], ids=("start", "requests"))
def test_nothing_of_emulation_is_imported_without_it(program: str) -> None:
    command = [sys.executable, "-c", program + FOUND]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, cwd=ROOT)
    assert done.stdout.strip() == "True []"


def test_no_request_looks_whether_a_release_is_emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once what it needs is there: a topic's settings, which are kept, depend on the release."""
    world = everyday_world()
    ask_everyday(world)

    def emulates(config: Config) -> str | None:
        raise AssertionError("a request asks which release is emulated")

    monkeypatch.setattr(Config, "emulates", property(emulates))
    ask_everyday(world)


@pytest.mark.parametrize("name", [name for name in releases() if not releases()[name].is_before(0, 10)])
def test_api_versions_lists_what_the_release_has(name: str) -> None:
    world, release = world_of(name), releases()[name]
    listed = world.ask("ApiVersions", 0, m.ApiVersionsRequest()).api_keys
    unlisted = {59, 70, 71, 72, 82} | set(range(76, 95))
    assert {one.api_key for one in listed} >= release.apis.keys() - unlisted
    for one in listed:
        low, high = release.apis[one.api_key]
        if one.api_key == 0 and not release.is_before(4, 0):
            low = 0  # clients infer from it which codecs there are
        assert (one.min_version, one.max_version) == (low, high), one.api_key


@pytest.mark.long
@pytest.mark.parametrize("name", ["0.8.2", "0.10.2", "3.9"])  # the last one has all versions
def test_every_version_is_answered(name: str) -> None:
    world = with_topic(name)
    chance = random.Random(7)
    for api in world.dispatcher.apis.values():
        if api.key in (17, 36, 50, 51):  # SASL begins a connection; SCRAM needs a right password
            continue
        for version in range(api.low, api.high + 1):
            request = getattr(m, api.request)()
            if api.key == 29:  # its codes must exist
                request.resource_type_filter = request.operation = request.permission_type = 1
            elif api.key not in (30, 31) and schema.load(api.request).valid.low > version:
                loaded = schema.load_removed(api.request)
                assert loaded is not None
                request = Generator(loaded, version, chance).message()
                if api.key == 0:
                    request.acks = 1
            answer = world.send(api.name, version, request)
            world.pass_ms(70_000)
            assert answer.done, f"{api.name} v{version}"
            assert not answer.closed or api.key == 1, f"{api.name} v{version}"
    assert world.broker.metrics.bugs == 0


def test_a_version_or_an_api_that_the_release_does_not_have_ends_the_connection() -> None:
    for name, api, version in (
        ("0.8.2", "ApiVersions", 0),
        ("0.8.2", "Produce", 1),
        ("0.10.2", "Fetch", 4),
        ("3.9", "Metadata", 13),
        ("3.9", "ShareFetch", 1),
        ("4.0", "Fetch", 3),
    ):
        with pytest.raises(Refused):
            world_of(name).send(api, version, getattr(m, f"{api}Request")())


def test_0_9_does_not_answer_what_it_does_not_know_and_keeps_the_connection() -> None:
    world = world_of("0.9")
    for api, version in (("ApiVersions", 0), ("Metadata", 1)):
        answer = world.send(api, version, getattr(m, f"{api}Request")())
        assert (answer.done, answer.reply, answer.closed) == (True, None, False)


def test_an_unknown_version_of_api_versions_gets_no_list_before_2_4() -> None:
    for name, keys in (("0.10.0", []), ("2.3", []), ("2.4", [18]), ("3.9", [18])):
        world = world_of(name)
        frame = memoryview(bytearray(b"\0\x12\0\x63\0\0\0\1\0\1x\0"))
        heads: list[bytes] = []

        def take(answer: Any, end: bool, to: list[bytes] = heads) -> None:
            to.append(bytes(answer.head))

        world.dispatcher.handle(world.peer, frame, take)
        reply = codec.parse("ApiVersionsResponse", 0, heads[0], 8)
        assert (reply.error_code, [one.api_key for one in reply.api_keys]) == (Errors.UNSUPPORTED_VERSION, keys)


def epoch_of_features(name: str) -> int:
    request = m.ApiVersionsRequest(client_software_name="test", client_software_version="1")
    found: int = world_of(name).ask("ApiVersions", 3, request).finalized_features_epoch
    return found


def test_features_have_the_levels_of_the_release() -> None:
    for name, version, levels in (
        ("3.2", 3, {}),
        ("3.3", 3, {"metadata.version": 7}),
        ("3.9", 4, {"kraft.version": 1, "metadata.version": 21}),
    ):
        request = m.ApiVersionsRequest(client_software_name="test", client_software_version="1")
        answer = world_of(name).ask("ApiVersions", version, request)
        assert {one.name: one.max_version for one in answer.supported_features} == levels
        assert {one.name: one.max_version_level for one in answer.finalized_features} == levels
        assert (answer.finalized_features_epoch > 0) == bool(levels)
    assert [epoch_of_features(name) for name in ("2.6", "2.7")] == [-1, 0]  # since ZooKeeper has a node for them


@pytest.mark.parametrize(("name", "version"), [("3.9", 0), ("4.0", 1)])
def test_transactions_are_recorded_so_that_the_release_can_read_them(name: str, version: int) -> None:
    world = transaction_world.world(ottla_emulate=name)
    transaction_world.begun(world, raises=False).write(b"a")
    entries = list(log_entries(transaction_world.partition(world, TOPIC_NAME).open_log()))
    assert entries
    for entry in entries:
        assert entry.record is not None
        assert entry.record.value is not None
        assert int.from_bytes(entry.record.value[:2], "big") == version


def test_a_topic_that_is_being_created_has_no_leader_with_zookeeper() -> None:
    r = m.MetadataRequest
    for name, code in (("0.8.2", Errors.LEADER_NOT_AVAILABLE), ("3.3", Errors.UNKNOWN_TOPIC_OR_PARTITION)):
        world = world_of(name)
        asked = r(topics=[r.MetadataRequestTopic(name="new")])
        assert world.ask("Metadata", 0, asked).topics[0].error_code == code
        world.pass_ms(100)
        assert world.ask("Metadata", 0, asked).topics[0].error_code == 0
    world = world_of("0.8.2", auto_create_topics_enable="false")
    assert world.ask("Metadata", 0, asked).topics[0].error_code == Errors.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("release", ["0.8.2", "0.10.2", "1.1", "3.9"])
@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_old_messages_come_back_with_their_offsets(release: str, codec: int) -> None:
    world = with_topic(release)
    assert put(world, sent(b"a", b"b", codec=codec)).base_offset == 0
    assert put(world, sent(b"c")).base_offset == 2
    assert messages_in(fetched(world)) == [(0, b"a"), (1, b"b"), (2, b"c")]
    assert messages_in(fetched(world, 1))[-2:] == [(1, b"b"), (2, b"c")]
    beyond = fetched(world, 4)
    assert (beyond.error_code, beyond.high_watermark, bytes(beyond.records)) == (Errors.OFFSET_OUT_OF_RANGE, -1, b"")
    if release != "0.8.2":
        (first, *_) = legacy.decode(bytes(fetched(world, 0, 2).records))
        assert (first.magic, first.timestamp) == (1, -1)


def test_later_clients_read_what_old_ones_wrote_and_the_other_way_round() -> None:
    world = with_topic("1.1")
    put(world, sent(b"old"))
    new = records.Record(b"k", b"new", 1_700_000_000_000, 0, (("name", b"value"),))
    assert put(world, bytes(records.encode([new])), version=3).error_code == 0
    answer = world.ask("Fetch", 4, fetch_message("t", 0))
    batches = bytes(answer.responses[0].partitions[0].records)
    assert [at.header.magic for at in records.batches(batches)] == [2, 2]
    assert messages_in(fetched(world)) == [(0, b"old"), (1, b"new")]
    assert [one.timestamp for one in legacy.decode(bytes(fetched(world, 1, 2).records))] == [1_700_000_000_000]


def test_a_message_larger_than_the_buffer_comes_in_part_up_to_version_2() -> None:
    world = with_topic("0.10.2")
    put(world, sent(b"x" * 1000))
    whole = bytes(fetched(world).records)
    for bytes_max in (1, 11, 500, len(whole) - 1):
        assert bytes(fetched(world, 0, 0, bytes_max).records) == whole[:bytes_max]
    assert bytes(fetched(world, 0, 1, len(whole)).records) == whole
    assert len(messages_in(fetched(world, 0, 3, 1))) == 1, "since version 3 the first message is whole"


def test_each_partition_of_a_reply_gets_its_part_of_a_message() -> None:
    world = with_topic("0.10.2", num_partitions="2")
    r = m.ProduceRequest
    parts = [r.PartitionProduceData(index=index, records=sent(b"x" * 1000)) for index in (0, 1)]
    world.ask("Produce", 0, r(acks=1, topic_data=[r.TopicProduceData(name="t", partition_data=parts)]))
    f = m.FetchRequest
    wanted = [f.FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=100) for index in (0, 1)]
    answer = world.ask("Fetch", 0, f(replica_id=-1, topics=[f.FetchTopic(topic="t", partitions=wanted)]))
    assert [len(one.records) for one in answer.responses[0].partitions] == [100, 100]


def test_a_fetch_waits_for_messages() -> None:
    world = with_topic("0.8.2")
    r = m.FetchRequest
    wanted = r.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    waiting = world.send(
        "Fetch",
        0,
        r(replica_id=-1, max_wait_ms=500, min_bytes=1, topics=[r.FetchTopic(topic="t", partitions=[wanted])]),
    )
    world.pass_ms(100)
    assert not waiting.done
    put(world, sent(b"now"))
    world.pass_ms(1)
    assert messages_in(waiting.reply.responses[0].partitions[0]) == [(0, b"now")]


def test_what_is_wrong_with_one_partition_is_answered_for_it_alone() -> None:
    world = with_topic("0.8.2", num_partitions="2")
    r = m.ProduceRequest
    parts = [
        r.PartitionProduceData(index=0, records=sent(b"a")[:-1] + b"x"),
        r.PartitionProduceData(index=1, records=sent(b"a")),
        r.PartitionProduceData(index=7, records=sent(b"a")),
    ]
    request = r(acks=1, topic_data=[r.TopicProduceData(name="t", partition_data=parts)])
    answers = world.ask("Produce", 0, request).responses[0].partition_responses
    assert [(one.index, one.error_code, one.base_offset) for one in answers] == [
        (0, Errors.CORRUPT_MESSAGE, -1),
        (1, 0, 0),
        (7, Errors.UNKNOWN_TOPIC_OR_PARTITION, -1),
    ]
    request.acks = 0
    assert world.send("Produce", 0, request).closed


def test_an_empty_set_is_accepted_and_has_no_offset() -> None:
    answer = put(with_topic("0.8.2"), b"")
    assert (answer.error_code, answer.base_offset) == (0, -1)


def test_a_set_of_messages_may_be_larger_than_a_message_before_0_11() -> None:
    many = sent(*[bytes(400)] * 10)
    for release, code in (("0.10.2", 0), ("1.1", Errors.MESSAGE_TOO_LARGE)):
        world = with_topic(release, message_max_bytes="1000")
        assert put(world, many).error_code == code
    world = with_topic("0.10.2", message_max_bytes="1000")
    put(world, many)
    assert [offset for offset, _ in messages_in(fetched(world))] == list(range(10))
    assert put(world, sent(bytes(1001))).error_code == Errors.MESSAGE_TOO_LARGE


def test_acknowledgements_wait_for_the_high_watermark() -> None:
    for release in ("0.8.2", "1.1"):
        world = with_topic(release)
        set_policy(world, "t", "lag=50ms")
        answer = world.send("Produce", 0, produce_message("t", sent(b"a"), acks=-1))
        world.pass_ms(10)
        assert not answer.done
        world.pass_ms(100)
        assert produced(answer.reply).error_code == 0
    assert put(with_topic("0.9"), sent(b"a"), acks=2).error_code == Errors.INVALID_REQUIRED_ACKS


def test_0_8_2_waits_for_as_many_replicas_as_a_producer_asks_for() -> None:
    world = with_topic("0.8.2", ottla_isr_size="2")
    assert produced(world.ask("Produce", 0, produce_message("t", sent(b"a"), acks=2))).error_code == 0
    answer = world.send("Produce", 0, produce_message("t", sent(b"b"), acks=3, timeout_ms=500))
    world.pass_ms(499)
    assert not answer.done
    world.pass_ms(2)
    assert produced(answer.reply).error_code == Errors.REQUEST_TIMED_OUT
    assert messages_in(fetched(world)) == [(0, b"a"), (1, b"b")], "the messages stay"


def test_a_message_without_a_key_is_corrupt_for_a_compacted_topic() -> None:
    world = with_topic("0.8.2", log_cleanup_policy="compact")
    answer = put(world, legacy.encode([Message(0, None, b"v", 0)]))
    assert answer.error_code == Errors.CORRUPT_MESSAGE, "INVALID_RECORD did not exist yet"


def before(world: World, timestamp: int, count: int = 10, name: str = "t") -> Any:
    r = m.ListOffsetsRequest
    wanted = (
        tree("ListOffsetsRequest", 0)
        .at("topics.partitions")
        .cls(partition_index=0, timestamp=timestamp, max_num_offsets=count)
    )
    answer = world.ask("ListOffsets", 0, r(replica_id=-1, topics=[r.ListOffsetsTopic(name=name, partitions=[wanted])]))
    return answer.topics[0].partitions[0]


def test_offsets_before_a_time_are_those_of_segments() -> None:
    world = with_topic("0.8.2", log_segment_bytes="1048576")
    assert before(world, -1).old_style_offsets == before(world, -2).old_style_offsets == [0]
    for _ in range(3):
        world.files.now_ms += 1000
        put(world, sent(*[bytes(400_000)] * 2))
    log = world.broker.partitions.get("t", 0).open_log()
    assert log.bases == [0, 2, 4]
    assert before(world, -1).old_style_offsets == [6, 4, 2, 0]
    assert before(world, -1, 2).old_style_offsets == [6, 4]
    assert before(world, -2).old_style_offsets == [0]
    times = [one.files.modified_ms(one.path(".log")) for one in log.segments]
    assert times == sorted(set(times))
    assert before(world, times[1] + 1).old_style_offsets == [2, 0]
    assert before(world, times[0]).old_style_offsets == [0]
    assert before(world, -5).old_style_offsets == []
    assert before(world, -1, 0).old_style_offsets == before(world, -1, -5).old_style_offsets == []
    absent = before(world, -1, name="absent")
    assert (absent.error_code, absent.old_style_offsets) == (Errors.UNKNOWN_TOPIC_OR_PARTITION, [])


def test_offsets_are_committed_since_version_1_and_need_zookeeper_in_version_0() -> None:
    r, q = m.OffsetCommitRequest, m.OffsetFetchRequest
    commit_class = tree("OffsetCommitRequest", 1).at("topics.partitions").cls
    for release, code in (("0.8.2", Errors.UNKNOWN_SERVER_ERROR), ("3.9", Errors.UNSUPPORTED_VERSION)):
        world = with_topic(release)
        world.ask("FindCoordinator", 0, m.FindCoordinatorRequest(key="g"))
        wanted = q(group_id="g", topics=[q.OffsetFetchRequestTopic(name="t", partition_indexes=[0])])
        part = commit_class(partition_index=0, committed_offset=5, committed_metadata="m", commit_timestamp=-1)
        asked = r(group_id="g", topics=[r.OffsetCommitRequestTopic(name="t", partitions=[part])])
        assert world.ask("OffsetCommit", 0, asked).topics[0].partitions[0].error_code == code
        found = world.ask("OffsetFetch", 0, wanted).topics[0].partitions[0]
        assert (found.error_code, found.committed_offset) == (code, -1)
        asked.generation_id_or_member_epoch = -1
        assert world.ask("OffsetCommit", 1, asked).topics[0].partitions[0].error_code == 0
        found = world.ask("OffsetFetch", 1, wanted).topics[0].partitions[0]
        assert (found.error_code, found.committed_offset, found.metadata) == (0, 5, "m")


def test_configs_say_whether_they_are_defaults_in_version_0() -> None:
    world = with_topic("0.11")
    r = m.DescribeConfigsRequest
    asked = r(
        resources=[r.DescribeConfigsResource(resource_type=2, resource_name="t", configuration_keys=["flush.ms"])]
    )
    (found,) = world.ask("DescribeConfigs", 0, asked).results[0].configs
    assert (found.name, found.is_default) == ("flush.ms", True)


def test_error_codes_that_did_not_exist_become_others() -> None:
    oldest = ErrorCodes(releases()["0.8.2"])
    assert oldest.of(Errors.KAFKA_STORAGE_ERROR) == Errors.NOT_LEADER_OR_FOLLOWER
    assert oldest.of(Errors.THROTTLING_QUOTA_EXCEEDED) == Errors.REQUEST_TIMED_OUT
    assert oldest.of(Errors.STREAMS_INVALID_TOPOLOGY) == Errors.UNKNOWN_SERVER_ERROR
    assert ErrorCodes(releases()["1.0"]).of(Errors.KAFKA_STORAGE_ERROR) == Errors.KAFKA_STORAGE_ERROR
    for name, release in releases().items():
        codes = ErrorCodes(release)
        assert {codes.of(code) for code in CODES.values()} <= release.errors, name
    assert INSTEAD.keys() | set(INSTEAD.values()) <= CODES.keys()


def test_without_emulation_old_versions_are_refused() -> None:
    world = World()
    create(world, "t")
    with pytest.raises(Refused):
        world.send("Produce", 2, produce_message("t", sent(b"a")))
    assert read(world, "t") == []
    assert type(world.dispatcher) is Dispatcher
