"""Brokers of Kafka beside ours in a ZooKeeper in memory: they are told what is here, and clients hear of them."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from ottla.broker.emulation.releases import releases
from ottla.broker.net.dispatch import Refused
from ottla.broker.zookeeper.neighbours import ask
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors
from ottla.protocol.update_metadata import ToldBroker, ToldPartition, error_of, request
from ottla.protocol.zookeeper_values import EndPoint

from ..support.emulated import answered
from ..support.kazoo_double import KazooDouble, Node
from ..support.world import World
from ..support.zookeeper_world import ROUNDS_MS, create, delete, grow, put, started_beside

KAFKA = "/brokers/ids/1"
AT = {"version": 1, "host": "127.0.0.1", "port": 9999, "jmx_port": -1, "timestamp": "1"}


class Kafka:
    """A broker that takes requests; `told`: what it was told, by topic and index, and the ids of brokers."""

    def __init__(self) -> None:
        self.told: dict[tuple[str, int], int] = {}
        self.brokers: list[tuple[int, str, int]] = []
        self.controller = (-1, -1)
        self.requests, self.answers = 0, True
        self.error = 0

    def ask(self, at: EndPoint, frames: list[bytes]) -> list[bytes]:
        if not self.answers:
            raise ConnectionRefusedError(at)
        self.requests += len(frames)
        return [self._taken(memoryview(frame)) for frame in frames]

    def _taken(self, frame: memoryview) -> bytes:
        offset = 0

        def read(layout: str) -> tuple[Any, ...]:
            nonlocal offset
            found = struct.unpack_from(layout, frame, offset)
            offset += struct.calcsize(layout)
            return found

        def text() -> str:
            nonlocal offset
            (size,) = read(">h")
            offset += size
            return bytes(frame[offset - size : offset]).decode()

        size, key, version, number = read(">ihhi")
        assert (size, key, version, text()) == (len(frame) - 4, 6, 0, "ottla")
        self.controller = read(">ii")
        for _ in range(read(">i")[0]):
            topic = text()
            index, epoch, leader, _, count = read(">iiiii")
            assert epoch == self.controller[1]
            read(f">{count}i")
            assert read(">i") == (0,)
            read(f">{read('>i')[0]}i")
            if leader == -2:
                del self.told[topic, index]
            else:
                self.told[topic, index] = leader
        self.brokers = [(read(">i")[0], text(), read(">i")[0]) for _ in range(read(">i")[0])]
        assert offset == len(frame)
        return struct.pack(">ih", number, self.error)


@pytest.fixture
def kafka() -> Kafka:
    return Kafka()


@pytest.fixture
def w(client: KazooDouble, kafka: Kafka) -> World:
    return started_beside(kafka.ask, client, listeners="PLAINTEXT://127.0.0.1:9092")


def registers(client: KazooDouble, w: World) -> None:
    put(client, KAFKA, AT)
    w.pass_ms(ROUNDS_MS)


def in_metadata(w: World) -> list[tuple[int, str, int]]:
    found = w.ask("Metadata", 0, m.MetadataRequest(topics=[]))
    return [(one.node_id, one.host, one.port) for one in found.brokers]


def test_a_broker_of_kafka_is_told_everything_when_it_comes(client: KazooDouble, w: World, kafka: Kafka) -> None:
    create(w, "t", 2)
    w.pass_ms(ROUNDS_MS)
    assert kafka.requests == 0
    registers(client, w)
    assert kafka.told == {("t", 0): 7, ("t", 1): 7}
    assert kafka.controller == (7, 1)
    assert kafka.brokers == in_metadata(w)
    assert [one[0] for one in kafka.brokers] == [7, 1]
    assert kafka.brokers[1] == (1, "127.0.0.1", 9999)


@pytest.mark.parametrize(("release", "has_transactions"), [("0.8.2", False), ("1.1", True)])
def test_the_coordinators_have_topics_before_a_broker_of_kafka_makes_them(
    client: KazooDouble, kafka: Kafka, release: str, has_transactions: bool
) -> None:
    """It would lead them itself, which is refused."""
    sizes = {"offsets_topic_num_partitions": "1", "transaction_state_log_num_partitions": "1"}
    w = started_beside(kafka.ask, client, None, release, has_coordinators=True, **sizes)
    assert not w.broker.image.topics
    registers(client, w)
    made = {("__consumer_offsets", 0): 7, **({("__transaction_state", 0): 7} if has_transactions else {})}
    assert kafka.told == made
    for name, _ in made:
        assert json.loads(client.get(f"/brokers/topics/{name}")[0])["partitions"] == {"0": [7]}


def test_it_is_told_what_changes(client: KazooDouble, w: World, kafka: Kafka) -> None:
    create(w, "old")
    registers(client, w)
    kafka.told.clear()
    create(w, "t")
    w.pass_ms(ROUNDS_MS)
    assert kafka.told == {("t", 0): 7}  # and not what it knows
    grow(w, "t", 3)
    w.pass_ms(ROUNDS_MS)
    assert sorted(kafka.told) == [("t", 0), ("t", 1), ("t", 2)]
    delete(w, "t")
    w.pass_ms(ROUNDS_MS)
    assert kafka.told == {}
    before = kafka.requests
    w.pass_ms(ROUNDS_MS)
    assert kafka.requests == before


def test_one_that_does_not_answer_is_told_everything_later(
    client: KazooDouble, w: World, kafka: Kafka, caplog: pytest.LogCaptureFixture
) -> None:
    kafka.answers = False
    create(w, "t")
    registers(client, w)
    create(w, "more")
    w.pass_ms(ROUNDS_MS)
    kafka.answers, kafka.error = True, 31  # its rights are missing
    w.pass_ms(60_000)
    assert 0 < kafka.requests <= 6  # less and less often
    kafka.error = 0
    w.pass_ms(30_000)
    assert sorted(kafka.told) == [("more", 0), ("t", 0)]
    said = [one.getMessage() for one in caplog.records if "cannot be told" in one.getMessage()]
    assert len(said) == 1
    assert "broker 1 cannot be told of topics (ConnectionRefusedError" in said[0]


def test_it_is_in_the_description_of_the_cluster(client: KazooDouble, kafka: Kafka) -> None:
    w = started_beside(kafka.ask, client, None, "2.8", listeners="PLAINTEXT://127.0.0.1:9092")
    registers(client, w)
    found = w.ask("DescribeCluster", 0, m.DescribeClusterRequest())
    assert [(one.broker_id, one.port) for one in found.brokers] == [(1, 9999), (7, 9092)]
    assert found.controller_id == 7


def test_one_that_goes_is_told_nothing_more_and_shown_no_more(client: KazooDouble, w: World, kafka: Kafka) -> None:
    registers(client, w)
    client.delete(KAFKA)
    w.pass_ms(ROUNDS_MS)
    before = kafka.requests
    create(w, "t")
    w.pass_ms(ROUNDS_MS)
    assert kafka.requests == before
    assert [one[0] for one in in_metadata(w)] == [7]


@pytest.mark.parametrize(
    ("number", "wrong"),
    [
        ("99999999999", {}),
        ("1", {"port": 1 << 16}),
        ("1", {"port": -2}),
        ("1", {"host": "\ud800"}),
        ("1", {"host": "h" * 40_000}),
        ("1", {"rack": "\udfff", "version": 3}),
        ("x", {}),
        ("1", {"host": 5}),
    ],
)
def test_what_no_reply_can_name_is_left_out(
    client: KazooDouble, w: World, kafka: Kafka, number: str, wrong: dict[str, object]
) -> None:
    put(client, f"/brokers/ids/{number}", {**AT, **wrong})
    w.pass_ms(ROUNDS_MS)
    assert [one[0] for one in in_metadata(w)] == [7]
    assert kafka.requests == 0
    assert w.broker.metrics.bugs == 0


def test_one_whose_host_is_no_name_is_not_asked_and_the_others_are(
    client: KazooDouble, kafka: Kafka, caplog: pytest.LogCaptureFixture
) -> None:
    """Python cannot encode it, and does not call that an OSError."""

    def asking(at: EndPoint, frames: list[bytes]) -> list[bytes]:
        return ask(at, frames) if ".." in (at.host or "") else kafka.ask(at, frames)

    w = started_beside(asking, client)
    create(w, "t")
    put(client, "/brokers/ids/0", {**AT, "host": "a..b"})
    registers(client, w)
    assert kafka.told == {("t", 0): 7}
    assert "broker 0 cannot be told of topics" in caplog.text
    assert "a..b is not the name of a host" in caplog.text  # the rest is Python's, and each version has its own words
    assert w.broker.metrics.bugs == 0


@pytest.mark.long
def test_many_partitions_are_several_requests(client: KazooDouble, w: World, kafka: Kafka) -> None:
    create(w, "t", 2500)
    w.pass_ms(ROUNDS_MS)
    registers(client, w)
    assert (len(kafka.told), kafka.requests) == (2500, 3)


def test_producer_ids_that_it_takes_are_not_given_away_again(client: KazooDouble, w: World) -> None:
    block = {"version": 1, "broker": 1, "block_start": "8000", "block_end": "8999"}
    with client.tool():
        client.set("/latest_producer_id_block", json.dumps(block).encode())
    w.pass_ms(ROUNDS_MS)
    assert w.broker.image.next_producer_id == 9000


def test_a_request_is_version_0_of_update_metadata() -> None:
    partition = ToldPartition("t", 1, 7, 5, (7,), (7, 8))
    frame = request((7, 3), [partition], [ToldBroker(7, "h", 9)], 4)
    body = "0006000000000004 00056f74746c61 0000000700000003 00000001 000174 00000001 00000003 00000007 00000005"
    body += "0000000100000007 00000000 00000002 00000007 00000008 00000001 00000007 000168 00000009"
    assert frame[4:].hex() == body.replace(" ", "")
    assert struct.unpack(">i", frame[:4]) == (len(frame) - 4,)
    assert error_of(bytes.fromhex("00000004000b"), 4) == 11


# producer ids, which brokers of Kafka 3.0 to 3.9 ask their controller for


def asks_for_ids(w: World, broker_id: int, epoch: int) -> tuple[int, int, int]:
    found = w.ask("AllocateProducerIds", 0, m.AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=epoch))
    return found.error_code, found.producer_id_start, found.producer_id_len


def epoch_of(client: KazooDouble, path: str = KAFKA) -> int:
    epoch: int = client.get(path)[1].czxid
    return epoch


def test_it_gets_blocks_of_producer_ids_which_zookeeper_hears_of(client: KazooDouble, kafka: Kafka) -> None:
    w = started_beside(kafka.ask, client, None, "3.9")
    registers(client, w)
    assert asks_for_ids(w, 1, epoch_of(client)) == (0, 0, 1000)
    block = {"version": 1, "broker": 7, "block_start": "0", "block_end": "999"}
    assert json.loads(client.get("/latest_producer_id_block")[0]) == block
    assert asks_for_ids(w, 1, epoch_of(client)) == (0, 1000, 1000)
    w.pass_ms(ROUNDS_MS)
    own = w.ask("InitProducerId", 4, m.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000))
    assert own.producer_id == 2000


def test_who_is_not_registered_like_that_gets_no_producer_ids(client: KazooDouble, kafka: Kafka) -> None:
    w = started_beside(kafka.ask, client, None, "3.9")
    unknown, stale = (int(code) for code in (Errors.BROKER_ID_NOT_REGISTERED, Errors.STALE_BROKER_EPOCH))
    assert asks_for_ids(w, 1, -1)[0] == unknown
    registers(client, w)
    first = epoch_of(client)
    assert [asks_for_ids(w, *one)[0] for one in ((7, -1), (2, first), (1, first + 1))] == [stale, unknown, stale]
    client.delete(KAFKA)
    registers(client, w)
    assert asks_for_ids(w, 1, first)[0] == stale
    assert asks_for_ids(w, 1, epoch_of(client)) == (0, 0, 1000)


def test_the_broker_itself_gets_them_too(client: KazooDouble, kafka: Kafka) -> None:
    w = started_beside(kafka.ask, client, None, "3.9")
    assert asks_for_ids(w, 7, epoch_of(client, "/brokers/ids/7")) == (0, 0, 1000)


ALTER_PARTITION = struct.pack(">hhih", 56, 3, 7, 1) + b"x\0" + struct.pack(">iq", 1, 5) + b"\1\0"
SHUTDOWN = struct.pack(">hhih", 7, 1, 7, 1) + b"x" + struct.pack(">i", 99)


def test_who_is_not_the_controller_says_so(client: KazooDouble, kafka: Kafka) -> None:
    """As 3.9.1 does: it sends the request away before it looks at the epoch."""
    w = started_beside(kafka.ask, client, None, "3.9")
    assert answered(w, ALTER_PARTITION).hex() == "000000070000000000004d0100"
    assert answered(w, SHUTDOWN).hex() == "00000007000800000000"
    client.lose()
    client.find(expired=True)
    client.nodes |= {"/controller": Node(b'{"version":1,"brokerid":1}', owner=99)}
    w.pass_ms(ROUNDS_MS)
    assert asks_for_ids(w, 1, -1)[0] == Errors.NOT_CONTROLLER
    assert answered(w, ALTER_PARTITION).hex() == "00000007000000000000290100"
    assert answered(w, SHUTDOWN).hex() == "00000007000b00000000"


def test_a_broker_with_zookeeper_lists_what_kafkas_does(client: KazooDouble, kafka: Kafka) -> None:
    """Until 3.9: requests between brokers, and none of the quorum of KRaft or its features."""
    w = started_beside(kafka.ask, client, None, "3.9")
    asked = m.ApiVersionsRequest(client_software_name="test", client_software_version="1")
    found = w.ask("ApiVersions", 3, asked)
    listed = {one.api_key: (one.min_version, one.max_version) for one in found.api_keys}
    assert listed == releases()["3.9"].zookeeper_apis
    assert not listed.keys() & {55, 64, 75, 80}
    assert (found.supported_features, found.finalized_features, found.finalized_features_epoch) == ([], [], 0)
    with pytest.raises(Refused):
        answered(w, struct.pack(">hhih", 58, 0, 7, 1) + b"x\0" + b"\1\1\1\0")
    with pytest.raises(Refused):
        w.ask("DescribeQuorum", 0, m.DescribeQuorumRequest())
