"""A real consumer of records that an unclean election has cut off finds it by OffsetForLeaderEpoch (KIP-320), and the
verdict sees that it does.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing import Broker

from ..support.poll import until
from .truncation import SETTINGS, truncation
from .verdicts import its_own, run_of
from .well_known import CLIENTS

pytestmark = pytest.mark.slow


def test_librdkafka_finds_that_its_position_was_cut_off() -> None:
    with Broker(SETTINGS) as cluster:
        servers: dict[str, str | int | float | bool] = {"bootstrap.servers": cluster.bootstrap_servers, "log_level": 2}
        servers["topic.metadata.refresh.interval.ms"] = 500
        admin = AdminClient(servers)
        config = {"unclean.leader.election.enable": "true"}
        admin.create_topics([NewTopic("orders", 1, replica_assignment=[[1, 2]], config=config)])["orders"].result()
        producer = Producer({**servers, "acks": 1})

        def produce(*values: bytes) -> None:
            for value in values:
                producer.produce("orders", value)
            assert producer.flush(60) == 0

        consumer = Consumer({**servers, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.assign([TopicPartition("orders", 0, 0)])
        read: list[bytes] = []

        def has_read(*values: bytes) -> bool:
            for one in consumer.consume(20, 0.1):
                assert not one.error(), one.error()
                read.append(one.value() or b"")
            return [one for one in read if one in values] == list(values)

        def leader() -> int:
            return int(admin.list_topics("orders", timeout=10).topics["orders"].partitions[0].leader)

        with cluster.lab.verdict("basic") as verdict:
            produce(b"a", b"b")
            until(lambda: has_read(b"a", b"b"), "the first records")
            cluster.lab.post("nodes/2", do="hold")
            produce(b"c", b"d", b"e")
            until(lambda: has_read(b"c", b"d", b"e"), "what the second replica has not when it is out of sync")
            cluster.lab.post("nodes/1", do="kill")
            until(lambda: leader() == 2, "an unclean election")
            produce(b"x")
            until(lambda: has_read(b"x"), "what the new leader has instead")
            consumer.close()
            outcome = verdict.outcomes()["KIP-320.truncation-found"]
        assert outcome == "passed"
        assert read == [b"a", b"b", b"c", b"d", b"e", b"x"], "it goes on where the logs part, and repeats nothing"


def test_the_program_of_a_client_goes_through_it(tmp_path: Path) -> None:
    (client,) = (one for one in CLIENTS if one.name == "kafka-python")
    seen = truncation(client.prepared(tmp_path), tmp_path)
    assert seen.missed == []
    found = run_of(its_own(client, seen.clients))["rules"]
    assert found["KIP-320.truncation-found"] == "passed"
    assert found["KIP-951.leader-taken"] == "not exercised", "its version of Fetch has no room for a leader"
