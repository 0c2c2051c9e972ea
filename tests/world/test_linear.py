"""No handler is worse than linear in what a request brings: every array of every API, doubled twice. See
`tests/support/linear.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support import linear
from ..support.linear import Case
from ..support.linear_world import MEMBERS, WIDE, made_world
from ..support.work import Text, counting, work_of
from ..support.world import World

pytestmark = pytest.mark.long

N = 12


@pytest.fixture(scope="module")
def world() -> World:
    return made_world(linear.size_for(N))


HOT = {"Produce", "OffsetCommit"}  # of these also in `make quick`


def cases() -> list[Any]:
    """Every array of every API."""
    return [
        pytest.param(one, id=str(one), marks=() if one.api.name in HOT else pytest.mark.slow) for one in linear.cases()
    ]


@pytest.mark.parametrize("case", cases())
def test_work_grows_with_the_elements_and_not_with_their_square(world: World, case: Case) -> None:
    """The elements are the same, or others, which are not there or there."""
    for naming, taken in linear.in_fork(lambda: linear.named(world, case, N, work_of)).items():
        assert linear.is_linear(taken, N), f"{N}, {2 * N} and {4 * N} elements, {naming}, take {taken}"


def test_loops_in_python_and_in_c_are_seen() -> None:
    """What the measure is worth: a loop within a loop, of each kind, is found, and one loop is not."""

    def taken(handler: Callable[[list[str]], object]) -> list[float]:
        return [
            work_of(lambda names=names: handler(names))  # type: ignore[misc]
            for names in (counting([f"n{i}" for i in range(c)]) for c in (N, 2 * N, 4 * N))
        ]

    assert linear.is_linear(taken(lambda names: [name for name in names if name == "x"]), N)
    assert linear.is_linear(taken(sorted), N)
    assert not linear.is_linear(taken(lambda names: [name for name in names if names.count(name) > 1]), N)
    assert not linear.is_linear(taken(lambda names: [all(len(other) for other in names) for _ in names]), N)
    assert counting("x") == Text("x") == "x"


FEW, MANY = 12, 48  # of everything that `made_world` makes
GROWTH_MAX = 200  # bytecodes and comparisons for each more of everything


def with_pending(size: int) -> World:
    """A world in which as many transactions are open, each with an offset of its own for one group."""
    world = made_world(size)
    for n in range(size):
        commit_in_transaction(world, f"open{n}", n)
    return world


def commit_in_transaction(world: World, name: str, partition: int) -> Any:
    """Returns the producer."""
    producer = world.ask(
        "InitProducerId", 5, m.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
    )
    r = m.TxnOffsetCommitRequest
    part = r.TxnOffsetCommitRequestPartition(partition_index=partition, committed_offset=1)
    request = r(
        transactional_id=name, group_id="txn", producer_id=producer.producer_id, producer_epoch=producer.producer_epoch
    )
    request.topics = [r.TxnOffsetCommitRequestTopic(name=WIDE, partitions=[part])]
    assert world.ask("TxnOffsetCommit", 5, request).topics[0].partitions[0].error_code == 0
    return producer


@pytest.fixture(scope="module")
def small_and_large() -> list[World]:
    return [with_pending(FEW), with_pending(MANY)]


def end_transaction(world: World) -> None:
    producer = commit_in_transaction(world, "mine", 0)
    who = m.EndTxnRequest(
        transactional_id="mine",
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        committed=True,
    )
    assert world.ask("EndTxn", 4, who).error_code == 0


def create_topic(world: World) -> None:
    r = m.CreateTopicsRequest
    configs = [
        r.CreatableTopicConfig(name="retention.ms", value="1000"),
        r.CreatableTopicConfig(name="cleanup.policy", value="compact"),
    ]
    topic = r.CreatableTopic(name="new.topic", num_partitions=1, replication_factor=1, configs=configs)
    assert world.ask("CreateTopics", 7, r(topics=[topic], timeout_ms=1000)).topics[0].error_code == 0


def configure_topic(world: World) -> None:
    r = m.IncrementalAlterConfigsRequest
    configs = [r.AlterableConfig(name="retention.ms", config_operation=0, value="5")]
    resource = r.AlterConfigsResource(resource_type=2, resource_name="t0", configs=configs)
    assert world.ask("IncrementalAlterConfigs", 1, r(resources=[resource])).responses[0].error_code == 0


def delete_topic(world: World) -> None:
    r = m.DeleteTopicsRequest
    assert world.ask("DeleteTopics", 5, r(topic_names=["t0"], timeout_ms=1000)).responses[0].error_code == 0


def add_partition(world: World) -> None:
    r = m.CreatePartitionsRequest
    topic = r.CreatePartitionsTopic(name="t0", count=2, assignments=None)
    assert world.ask("CreatePartitions", 3, r(topics=[topic], timeout_ms=1000)).results[0].error_code == 0


def begin_to_join(world: World) -> None:
    r = m.JoinGroupRequest
    request = r(group_id=MEMBERS, protocol_type="consumer", session_timeout_ms=10_000, rebalance_timeout_ms=9000)
    request.protocols = [r.JoinGroupRequestProtocol(name="p", metadata=b"")]
    assert world.ask("JoinGroup", 9, request).error_code == Errors.MEMBER_ID_REQUIRED


@pytest.mark.parametrize(
    "asked", [end_transaction, create_topic, configure_topic, delete_topic, add_partition, begin_to_join]
)
def test_work_does_not_grow_with_what_there_is(small_and_large: list[World], asked: Callable[[World], None]) -> None:
    """The same requests where there are four times as many topics, partitions, members and open transactions.

    A deletion looks at all offsets of a shard, as in Kafka; what it does for each is little. The difference counts, and
    not the ratio: the first request of its kind in a process also imports modules and compiles functions, which may be
    most of its work, or nothing if an earlier test did that.
    """
    few, many = (linear.in_fork(lambda world=world: work_of(lambda: asked(world))) for world in small_and_large)  # type: ignore[misc]
    assert many - few <= GROWTH_MAX * (MANY - FEW), f"{few} with {FEW} of everything, {many} with {MANY}"
