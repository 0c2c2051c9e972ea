"""`ottla serve --seed N`: two runs with the same client input write the same bytes, and give the same replies.

    python -m tests.process.test_seed SEED

prints the digests of a run: of every reply, and of every file of the data directory. The script uses groups of all
kinds, transactions, retention and compaction, and time that passes by `clock advance`.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.records import Record, Template

from ottla.testing import Broker

from ..support.ask import batch, create, fetch_message, produce, produce_message
from ..support.scripted import (
    NotedWire,
    Transaction,
    beat,
    classic_state,
    commit,
    committed,
    consumer_members,
    find,
    join,
    offsets,
)
from ..support.share_session import ShareSession
from ..support.wire import Wire, request_frame

pytestmark = pytest.mark.slow
START_MS = 1_767_225_600_000
SETTINGS: dict[str, object] = {
    "ottla.high.watermark": "lags:lag=20ms±15ms",
    "flush.messages": 1000,
    "log.roll.jitter.ms": 200_000,
    "log.segment.delete.delay.ms": 1000,
    "log.cleaner.min.cleanable.ratio": 0.01,
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.num.partitions": 3,
    "share.coordinator.state.topic.num.partitions": 3,
    "connections.max.idle.ms": 100_000_000,
}


def script(broker: Broker, wire: NotedWire) -> None:
    """What the client says, one request after the other."""
    clock = broker.clock
    for name in ("classic", "modern", "share", "plain", "lags"):
        create(wire, name, 2)
    create(wire, "short", retention_ms="3600000", segment_ms="600000")
    create(wire, "compacted", cleanup_policy="compact", segment_ms="60000", max_compaction_lag_ms="60000")
    for key, kind in (("classic", 0), ("tx", 1)):
        find(wire, key, kind)
    _records(broker, wire)
    join(wire, clock, "classic", "classic")
    assert commit(wire, "group", "plain", 3) == 0
    _modern(broker, wire)
    _share(broker, wire)
    _transactions(broker, wire)
    clock.advance("46s")
    assert classic_state(wire, "classic") == "Empty"
    assert consumer_members(wire, "modern") == []
    clock.advance("3h")
    assert offsets(wire, "short") == (1, 1), "retention has deleted"
    assert committed(wire, "group", "plain") == 3


def _records(broker: Broker, wire: NotedWire) -> None:
    produce(wire, "short", b"old", now=START_MS)
    for n in range(30):
        wire.ask("Produce", 9, produce_message("plain", batch(b"%d" % n, now=START_MS + n)))
        wire.ask("Produce", 9, produce_message("compacted", keyed(b"%d" % (n % 3), b"%d" % n)))
        broker.clock.advance("10s")
    wire.say("Produce", 9, produce_message("lags", batch(b"x", now=START_MS)))
    broker.clock.advance(60)
    wire.reply("Produce", 9)
    message = fetch_message("plain", 0)
    message.session_id, message.session_epoch = 0, 0
    assert wire.ask("Fetch", 12, message).session_id > 0
    asked = m.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    assert wire.ask("InitProducerId", 4, asked).error_code == 0


def keyed(key: bytes, value: bytes) -> bytes:
    return bytes(records.encode([Record(key, value, START_MS)], Template()))


def _modern(broker: Broker, wire: NotedWire) -> None:
    more = {"rebalance_timeout_ms": 10_000, "subscribed_topic_names": ["modern"], "owned": []}
    epoch = beat(wire, "modern", "a", 0, **more).member_epoch
    beat(wire, "gone", "b", 0, **more)
    for _ in range(4):
        broker.clock.advance("5s")
        epoch = beat(wire, "modern", "a", epoch).member_epoch
    beat(wire, "gone", "b", -1)
    assert consumer_members(wire, "modern") == ["a"]


def _share(broker: Broker, wire: NotedWire) -> None:
    r = m.MetadataRequest
    (found,) = wire.ask("Metadata", 12, r(topics=[r.MetadataRequestTopic(name="share")])).topics
    produce(wire, "share", b"a", b"b", now=START_MS)
    session = ShareSession(wire, "share", found.topic_id, 2)
    assert [row[1:] for row in session.fetch()] == [(0, 1, 1)]
    broker.clock.advance("31s")
    ((partition, first, last, count),) = session.fetch()
    assert count == 2
    session.acknowledge(partition, first, last, [1])


def _transactions(broker: Broker, wire: NotedWire) -> None:
    ends, expires = Transaction(wire, "ends", "plain"), Transaction(wire, "expires", "plain")
    for is_committed in (True, False):
        assert ends.write(b"in a transaction") == 0
        assert ends.end(is_committed) == 0
    assert expires.write(b"never committed") == 0
    broker.clock.advance("75s")
    assert expires.state() == "CompleteAbort"


def outcome(seed: int, chance: random.Random | None = None) -> dict[str, Any]:
    """What a run leaves."""
    folder = Path(tempfile.mkdtemp(prefix="ottla-seed-"))
    try:
        with Broker({**SETTINGS, "ottla.lab.seed": seed}, directory=folder) as broker:
            with NotedWire(broker.bootstrap_servers, timeout=30) as wire:
                script(broker, wire)
                if chance is not None:
                    in_pieces(wire, chance)
                replies = wire.replies
            address = broker.bootstrap_servers
            assert broker.stop() == 0
        files = digests(folder)
    finally:
        shutil.rmtree(folder)
    return {"address": address, "replies": [sha256(one).hexdigest() for one in replies], "files": files}


def digests(folder: Path) -> dict[str, str]:
    """Of every file, by its path."""
    return {
        str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def in_pieces(wire: NotedWire, chance: random.Random) -> None:
    """Requests that do not wait for replies, in pieces as a network may cut them. The offsets of a deleted topic are
    removed after the reply to its deletion: with the commit that follows, or before it, in a broker without a seed.
    """
    c, frames = m.CreateTopicsRequest, b""
    for n in range(40):
        topic = c.CreatableTopic(name=f"t{n}", num_partitions=1, replication_factor=1)
        for name, version, message in (
            ("CreateTopics", 5, c(topics=[topic], timeout_ms=10_000)),
            ("OffsetCommit", 8, _offset(f"t{n}", n)),
            ("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=[f"t{n}"], timeout_ms=10_000)),
            ("OffsetCommit", 8, _offset("plain", n)),
            ("Produce", 9, produce_message("plain", batch(b"%d" % n, now=START_MS))),
        ):
            frames += request_frame(name, version, message, 1000 + n)
    while frames:
        cut = chance.choice((1, 20, 50, 200, 1000))
        wire.send(frames[:cut])
        frames = frames[cut:]
    for _ in range(200):
        wire.read_frame()


def _offset(topic: str, offset: int) -> m.OffsetCommitRequest:
    r = m.OffsetCommitRequest
    part = r.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    topics = [r.OffsetCommitRequestTopic(name=topic, partitions=[part])]
    return r(group_id="group", generation_id_or_member_epoch=-1, member_id="", topics=topics)


def in_a_process(seed: int, hash_seed: str) -> Any:
    """The pieces are cut differently in each run."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-m", "tests.process.test_seed", str(seed), hash_seed]
    return json.loads(
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300).stdout
    )


def test_two_runs_with_the_same_input_write_the_same_bytes() -> None:
    first, second = in_a_process(7, "1"), in_a_process(7, "2")
    assert first["address"] == second["address"], "a port that may be any follows from the seed too"
    names = {**first["files"], **second["files"]}
    differing = [name for name in names if first["files"].get(name) != second["files"].get(name)]
    assert not differing
    assert first == second
    assert len(first["replies"]) > 150
    assert "data/cleaner-offset-checkpoint" in first["files"], "compaction has run"


def with_nodes(folder: Path) -> tuple[list[bytes], dict[str, str]]:
    """What three nodes reply and write, of which one stops and comes again."""
    nodes = {"ottla.nodes": 3, "default.replication.factor": 3, "min.insync.replicas": 2}
    with (
        Broker({**nodes, "ottla.lab.seed": 7, "offsets.topic.num.partitions": 1}, directory=folder) as broker,
        NotedWire(broker.bootstrap_servers.split(",")[0]) as wire,
    ):
        create(wire, "plain", 3)
        find(wire, "group")
        for happens in ("stop", "start"):
            broker.lab.post("nodes/2", do=happens)
            broker.clock.advance("10s")
            wire.ask("Metadata", 12, m.MetadataRequest(topics=None))
            for partition in range(3):
                wire.ask("Produce", 9, produce_message("plain", batch(happens.encode()), partition, -1))
    return wire.replies, digests(folder)


def test_nodes_that_stop_and_come_again_write_the_same_bytes(tmp_path: Path) -> None:
    for run in ("a", "b"):
        (tmp_path / run).mkdir()
    first, second = with_nodes(tmp_path / "a"), with_nodes(tmp_path / "b")
    assert first == second


def test_another_seed_has_other_ids(tmp_path: Path) -> None:
    found: list[tuple[str, str]] = []
    for seed in (7, 8, 7):
        with Broker({"ottla.lab.seed": seed}, directory=tmp_path / f"{len(found)}") as broker:
            found.append((broker.bootstrap_servers, broker.lab.get("state")["cluster_id"]))
    assert found[0] == found[2]
    assert found[0][0] != found[1][0]
    assert found[0][1] != found[1][1]


def test_a_restart_gives_no_id_twice(tmp_path: Path) -> None:
    """The second start has the same seed, and draws other ids; two such pairs of starts draw the same ones."""
    pairs = []
    for pair in ("a", "b"):
        ids = []
        for number in range(2):
            settings: dict[str, object] = {"ottla.lab.seed": 3}
            with Broker(settings, directory=tmp_path / pair) as broker, Wire(broker.bootstrap_servers) as wire:
                ids.append(create(wire, f"t{number}"))
        assert ids[0] != ids[1]
        pairs.append(ids)
    assert pairs[0] == pairs[1]


SECURED: dict[str, object] = {
    "ottla.lab.seed": 5,
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "ottla.users": "alice:alice-secret",
    "delegation.token.secret.key": "secret",
}


def secured_replies(folder: Path) -> list[bytes]:
    """The server's nonce and salt, and a delegation token."""
    with Broker(SECURED, directory=folder) as broker:
        with NotedWire(broker.bootstrap_servers, timeout=30) as scram:
            scram.ask("SaslHandshake", 1, m.SaslHandshakeRequest(mechanism="SCRAM-SHA-256"))
            first = scram.ask("SaslAuthenticate", 1, m.SaslAuthenticateRequest(auth_bytes=b"n,,n=alice,r=nonce"))
            assert first.auth_bytes.startswith(b"r=nonce")
        with NotedWire(broker.bootstrap_servers, timeout=30) as plain:
            plain.ask("SaslHandshake", 1, m.SaslHandshakeRequest(mechanism="PLAIN"))
            plain.ask("SaslAuthenticate", 1, m.SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret"))
            asked = m.CreateDelegationTokenRequest(max_lifetime_ms=-1)
            assert plain.ask("CreateDelegationToken", 3, asked).hmac
        return [*scram.replies, *plain.replies]


def test_salts_nonces_and_tokens_follow_from_the_seed(tmp_path: Path) -> None:
    assert secured_replies(tmp_path / "a") == secured_replies(tmp_path / "b")


if __name__ == "__main__":
    json.dump(outcome(int(sys.argv[1]), random.Random(sys.argv[2])), sys.stdout)
