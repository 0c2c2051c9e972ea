"""The lines of a conversation, byte for byte: how they are recorded and made may change, what they say may not.

`OTTLA_GOLDEN=write` writes the file again, for a change of the format that is meant.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest
from ottla.broker.lab.traces import recorder
from ottla.protocol import messages as m

from ..support.ask import batch, fetch_message, produce_message
from ..support.connected import Client, ConnectedWorld
from ..support.lab import LabWorld
from ..support.topic_world import create

GOLDEN: Final = Path(__file__).with_suffix(".jsonl")
RAW: Final = ("none", "frames")
LARGE: Final = batch(b"x" * 1100, producer_id=7, base_sequence=3)


def converse(world: ConnectedWorld) -> None:
    """What is usual, what is large, what is secret, and what is no request."""
    first, second = world.connect(), world.connect()
    first.ask("ApiVersions", 4, m.ApiVersionsRequest(client_software_name="one", client_software_version="1.0"))
    first.ask("Metadata", 12, m.MetadataRequest())
    second.ask("FindCoordinator", 4, m.FindCoordinatorRequest(coordinator_keys=["g\u00e9"]))
    _produce_and_fetch(first)
    second.ask("Heartbeat", 4, m.HeartbeatRequest(group_id="g\u00e9", member_id='"m"'))
    second.send("Heartbeat", 0, m.HeartbeatRequest(group_id="g", member_id="m"), client_id="another")
    world.pass_ms(30)
    _configure(second)
    second.feed(b"\0\0\0\x0a\x7f\xff\0\0\0\0\0\x09\xff\xff")
    first.lose()
    world.pass_ms(100)


def _produce_and_fetch(client: Client) -> None:
    client.ask("Produce", 9, produce_message("orders", batch(b"value")))
    client.send("Produce", 9, produce_message("orders", batch(b"unanswered"), acks=0))
    client.ask("Produce", 9, produce_message("orders", LARGE))
    message = produce_message("orders", LARGE)
    (topic,) = message.topic_data
    p = type(topic.partition_data[0])
    topic.partition_data = [p(index=0, records=LARGE), p(index=1, records=None), p(index=2, records=batch(b"y"))]
    client.ask("Produce", 11, message)
    topic.unknown_tags = [(9, b"tag")]
    client.ask("Produce", 9, message)
    for offset in (0, 2, 1000):
        client.ask("Fetch", 12, fetch_message("orders", offset, wait_ms=0))


def _configure(client: Client) -> None:
    r, d = m.IncrementalAlterConfigsRequest, m.DescribeConfigsRequest
    for name, value in (("ssl.keystore.password", "t0p"), ("log.retention.ms", "5")):
        config = r.AlterableConfig(name=name, value=value)
        resource = r.AlterConfigsResource(resource_type=4, resource_name="1", configs=[config])
        client.ask("IncrementalAlterConfigs", 1, r(resources=[resource], validate_only=True))
    asked = d.DescribeConfigsResource(resource_type=2, resource_name="orders", configuration_keys=["retention.ms"])
    client.ask("DescribeConfigs", 4, d(resources=[asked]))


@pytest.mark.parametrize("is_machines", [False, True])
@pytest.mark.parametrize("block_bytes", [recorder.BLOCK_BYTES, 1])
def test_the_lines_of_a_conversation_are_the_same_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int, is_machines: bool
) -> None:
    """`is_machines`: whether times are those of the machine, with which small requests are noted in a shorter way."""
    monkeypatch.setattr(recorder, "BLOCK_BYTES", block_bytes)
    world = ConnectedWorld(None, 0, ottla_trace_directory=str(tmp_path))
    world.schedule.is_machines = is_machines
    create(world, "orders", 2)
    lab = LabWorld(world)
    numbers = [lab.ask("POST /v1/traces", file=raw, raw=raw)["number"] for raw in RAW]
    converse(world)
    kept = [lab.ask(f"GET /v1/traces/{number}/events")["events"] for number in numbers]
    for number in numbers:
        lab.ask(f"DELETE /v1/traces/{number}")
    found = [(tmp_path / raw).read_bytes().partition(b"\n")[2] for raw in RAW]  # the first line has ottla's version
    lines = b"".join(found)
    if os.environ.get("OTTLA_GOLDEN") == "write":
        GOLDEN.write_bytes(lines)
    assert lines == GOLDEN.read_bytes()
    assert [len(one) for one in kept] == [one.count(b"\n") for one in found]
