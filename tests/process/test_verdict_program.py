"""The program that examines the clients of a broker, beside it: what becomes of it when one of them ends."""

from __future__ import annotations

import os
import signal

import psutil
import pytest
from ottla.protocol import messages as m

from ottla.lab_client import LabRefused
from ottla.testing import Broker

from ..support.poll import until
from ..support.wire import Wire

pytestmark = pytest.mark.long

EXCHANGES = 500


def program(broker: Broker) -> psutil.Process:
    (found,) = psutil.Process(broker.pid).children()
    return found


def use(broker: Broker) -> None:
    with Wire(broker.bootstrap_servers) as wire:
        for _ in range(EXCHANGES):
            wire.say("Metadata", 12, m.MetadataRequest(topics=[]))
        for _ in range(EXCHANGES):
            wire.read_frame()


def test_an_answer_has_all_that_was_before_the_question_and_the_program_ends_with_the_verdict() -> None:
    with Broker() as broker:
        broker.lab.post("verdict")
        examines = program(broker)
        use(broker)
        found = broker.lab.get("verdict")
        (client,) = found["clients"]
        assert (found["dropped"], found["events"] >= 2 * EXCHANGES) == (0, True)
        (checked,) = (one for one in client["rules"] if one["id"] == "protocol.correlation-ids")
        assert checked["outcome"] != "not exercised"
        assert broker.lab.delete("verdict")["clients"] == [client]
        until(lambda: not examines.is_running(), "the program has ended")


@pytest.mark.parametrize("end", [Broker.stop, Broker.kill])
def test_the_program_does_not_outlive_its_broker(end: object) -> None:
    assert callable(end)
    with Broker() as broker:
        broker.lab.post("verdict")
        examines = program(broker)
        use(broker)
        end(broker)
        until(lambda: not examines.is_running() or examines.status() == psutil.STATUS_ZOMBIE, "the program has ended")


def test_a_broker_goes_on_without_the_program() -> None:
    with Broker() as broker:
        broker.lab.post("verdict")
        examines = program(broker)
        os.kill(examines.pid, signal.SIGKILL)
        use(broker)
        with pytest.raises(LabRefused, match="has ended"):
            broker.lab.get("verdict")
        with pytest.raises(LabRefused, match="has ended"):
            broker.lab.delete("verdict")
        broker.lab.post("verdict")
        use(broker)
        assert len(broker.lab.delete("verdict")["clients"]) == 1
        assert broker.stop() == 0
