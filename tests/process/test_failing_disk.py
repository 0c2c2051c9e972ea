"""A broker process whose disk fails under the load of a client: the broker says which file failed and ends, or goes on
without the directory, and a start on a disk that is well again finds every acknowledged record.

Unlike files in memory (`tests.world.test_failing_files`), this meets each system call that Python makes.
"""

from __future__ import annotations

import errno
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import KafkaError, Message, Producer
from ottla.broker.net.server import EXIT_FAILED
from ottla.protocol import messages as m

from ottla.testing import Broker

from ..support.ask import create, fetch, fetch_message
from ..support.failing_disk import FailingDisk, compile_into
from ..support.poll import until
from ..support.wire import Closed, Wire

pytestmark = [pytest.mark.slow, pytest.mark.gcc]
BEFORE = 30  # records that are acknowledged before the disk fails
WITHIN_S = 30.0
SETTINGS: dict[str, object] = {
    "log.flush.offset.checkpoint.interval.ms": 300,
    "log.retention.check.interval.ms": 300,
    "log.initial.task.delay.ms": 100,
    "log.flush.interval.messages": 1,
    "log.index.interval.bytes": 0,
    "log.segment.bytes": 1048576,
    "log.retention.bytes": 3 << 20,
    "log.segment.delete.delay.ms": 100,
}
VALUE_SIZE = 100_000


class Fault(NamedTuple):
    call: str
    pattern: str
    error_number: int = errno.EIO


SEGMENT, METADATA = "*/t-0/*.log", "*/__cluster_metadata-0/*.log"
FAULTS = [
    Fault("write", SEGMENT, errno.ENOSPC),
    Fault("half", SEGMENT),
    Fault("sync", SEGMENT),
    Fault("drop", SEGMENT),
    Fault("read", SEGMENT),
    Fault("open", SEGMENT),
    Fault("write", "*.index", errno.EROFS),
    Fault("sync", "*.snapshot"),
    Fault("rename", "*recovery-point-offset-checkpoint"),
    Fault("remove", "*.deleted"),
    Fault("sync", "*/t-0"),
    Fault("half", METADATA),
    Fault("sync", METADATA),
    Fault("write", "*flushed-offset"),
]


class Load:
    """An idempotent producer with acks=all, which tries until `give_up` is called."""

    def __init__(self, servers: str, partition: int = 0) -> None:
        self.partition = partition
        self.acknowledged: list[int] = []
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                "linger.ms": 0,
                "log_level": 0,
            }
        )
        self._next = 0

    def send(self, count: int = 1, within_s: float = WITHIN_S) -> None:
        """Sends records, each when the one before is acknowledged or its time is over."""
        for _ in range(count):
            value = b"%d " % self._next + bytes(VALUE_SIZE)
            self._next += 1
            self._producer.produce("t", value, partition=self.partition, on_delivery=self._done)
            self._producer.flush(within_s)

    def give_up(self) -> None:
        self._producer.purge()
        self._producer.flush()

    def _done(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acknowledged.append(int((message.value() or b"").split()[0]))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_into(tmp_path_factory.mktemp("library"))


def use_everything(servers: str, number: int) -> None:
    """A read from the beginning and a new topic; errors are what is tested."""
    try:
        with Wire(servers, timeout=5) as wire:
            wire.ask("Fetch", 11, fetch_message("t", 0))
            create(wire, f"more{number}")
    except (Closed, OSError, AssertionError):
        pass


def numbers(servers: str, acknowledged: list[int], partition: int = 0) -> list[int]:
    """The numbers in a partition, as soon as all that were acknowledged are among them; after a start the log has to be
    opened, and the high watermark to reach its end.
    """
    deadline = time.monotonic() + WITHIN_S
    while True:
        found: list[int] = []
        try:
            with Wire(servers) as wire:
                found = [
                    int((value or b"").split()[0])
                    for value in fetch(wire, "t", first_offset(wire, partition), partition)
                ]
        except (AssertionError, Closed):
            if time.monotonic() > deadline:
                raise
        if (found and set(acknowledged) <= {*found, *range(found[0])}) or time.monotonic() > deadline:
            return found


def first_offset(wire: Wire, partition: int) -> int:
    r = m.ListOffsetsRequest
    wanted = r.ListOffsetsTopic(name="t", partitions=[r.ListOffsetsPartition(partition_index=partition, timestamp=-2)])
    (answer,) = wire.ask("ListOffsets", 5, r(replica_id=-1, topics=[wanted])).topics[0].partitions
    assert answer.error_code == 0, answer
    return int(answer.offset)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.call} {fault.pattern} {fault.error_number}")
def test_a_disk_that_fails_ends_the_broker_and_loses_nothing(fault: Fault, library: Path, tmp_path: Path) -> None:
    disk = FailingDisk(library, tmp_path / "control")
    broker = Broker(SETTINGS, directory=tmp_path, lab=False)
    with disk.under(broker):
        with Wire(broker.bootstrap_servers) as wire:
            create(wire, "t")
        load = Load(broker.bootstrap_servers)
        load.send(BEFORE)
        assert len(load.acknowledged) == BEFORE
        disk.fail(*fault)
        number, deadline = 0, time.monotonic() + WITHIN_S
        while broker.running and time.monotonic() < deadline:
            load.send(within_s=0.5)
            use_everything(broker.bootstrap_servers, number)
            number += 1
        assert disk.hits, "the call was never made"
        assert not broker.running, "the broker goes on"
        assert broker.stop() == EXIT_FAILED
        assert "log directory" in broker.log
        assert "Traceback" not in broker.log
        load.give_up()
    check_well(broker, {0: load})


def test_one_disk_that_fails_takes_its_partition_and_no_other(library: Path, tmp_path: Path) -> None:
    disk = FailingDisk(library, tmp_path / "control")
    directories = tmp_path / "a", tmp_path / "b"
    broker = Broker({**SETTINGS, "log.dirs": ",".join(map(str, directories))}, directory=tmp_path, lab=False)
    with disk.under(broker):
        with Wire(broker.bootstrap_servers) as wire:
            create(wire, "t", 2)
        inside = 0 if (directories[1] / "t-0").exists() else 1
        loads = {partition: Load(broker.bootstrap_servers, partition) for partition in (inside, 1 - inside)}
        for load in loads.values():
            load.send(BEFORE)
        disk.fail("half", f"{directories[1]}/*", errno.EIO)
        loads[inside].send(1, within_s=1)
        loads[1 - inside].send(5)
        assert broker.running
        assert [len(loads[index].acknowledged) for index in (inside, 1 - inside)] == [BEFORE, BEFORE + 5]
        until(lambda: f"log directory {directories[1]} failed" in broker.log, "the failure is logged", every=0.02)
        assert broker.stop() == 0
        for load in loads.values():
            load.give_up()
    check_well(broker, loads)


def check_well(broker: Broker, loads: dict[int, Load]) -> None:
    """Starts the broker on a disk that is well again: everything is there, once and in order."""
    broker.start()
    try:
        for partition, load in loads.items():
            found = numbers(broker.bootstrap_servers, load.acknowledged, partition)
            assert sorted(set(found)) == found, "a record twice, or out of order"
            assert set(load.acknowledged) <= {*found, *range(found[0])}, "an acknowledged record is lost"
            more = Load(broker.bootstrap_servers, partition)
            more.send()
            assert more.acknowledged
    finally:
        assert broker.stop() == 0
