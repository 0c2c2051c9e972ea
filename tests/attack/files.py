"""File names that are too long, and descriptors that run out."""

from __future__ import annotations

import contextlib

from ottla.protocol import messages as m

from ottla.testing import Broker

from ..support.ask import create, fetch, produce
from ..support.wire import Closed, Wire
from .harness import Site, attack

DESCRIPTORS = 256
PARTITIONS = 150


def delete(wire: Wire, *names: str) -> list[int]:
    request = m.DeleteTopicsRequest(topic_names=list(names), timeout_ms=10_000)
    return [answer.error_code for answer in wire.ask("DeleteTopics", 5, request).responses]


@attack(quick=True)
def topics_with_the_longest_names_are_deleted(site: Site) -> None:
    """`<topic>-0.<32 digits>-delete` would be longer than the 255 bytes of a file name."""
    with site.wire() as wire:
        for length in (213, 214, 230, 249):
            name = "n" * length
            for _ in range(2):
                create(wire, name, partitions=2)
                assert produce(wire, name, b"x").error_code == 0
                assert delete(wire, name) == [0]


class Limited(Broker):
    """A broker that may open few files."""

    def _command(self) -> list[str]:
        return ["sh", "-c", f'ulimit -n {DESCRIPTORS}; exec "$@"', "sh", *super()._command()]


@attack(quick=True)
def idle_connections_leave_descriptors_for_files(site: Site) -> None:
    """400 idle connections to a broker with 256 descriptors, which then writes to 150 partitions and rolls their
    segments.
    """
    with Limited({"log.flush.interval.messages": 1}, lab=False) as broker:
        with Wire(broker.bootstrap_servers, 30) as wire:
            create(wire, "t", PARTITIONS, segment_ms="1")
            idle = []
            for _ in range(400):
                with contextlib.suppress(OSError):
                    idle.append(Wire(broker.bootstrap_servers))
            for turn in range(3):
                for index in range(PARTITIONS):
                    answer = produce(wire, "t", b"%d" % turn, partition=index, now=1000 * turn)
                    assert answer.error_code == 0, (turn, index, answer, broker.log[-2000:])
            assert sum(is_open(one) for one in idle) < DESCRIPTORS / 2, "connections took the descriptors of files"
            for one in idle:
                one.close()
        with Wire(broker.bootstrap_servers) as wire:
            assert [fetch(wire, "t", partition=index) for index in range(PARTITIONS)] == [
                [b"0", b"1", b"2"]
            ] * PARTITIONS
        assert "failed" not in broker.log, broker.log[-3000:]
        assert broker.log.count("refused a connection") <= 2, "a line for each refused connection"
        assert broker.stop() == 0, broker.log[-3000:]
        broker.start()
        with Wire(broker.bootstrap_servers) as wire:
            assert fetch(wire, "t", partition=PARTITIONS - 1) == [b"0", b"1", b"2"]


def is_open(wire: Wire) -> bool:
    wire.socket.setblocking(False)
    try:
        return wire.socket.recv(1) != b""
    except BlockingIOError:
        return True
    except (Closed, ConnectionError):
        return False
