"""GetTelemetrySubscriptions and PushTelemetry: who is known to the broker, and for how long."""

from __future__ import annotations

from itertools import count

import pytest
from ottla.broker.controller.events import EVENT_STEP
from ottla.broker.controller.watchers import STEP_CHANGES
from ottla.broker.peer import Peer
from ottla.broker.telemetry import client_metrics_manager
from ottla.coordinator.metadata import configs
from ottla.coordinator.metadata.delta import MetadataDelta
from ottla.coordinator.metadata.state import CLIENT_METRICS
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.telemetry import CLIENT, alter, get, push
from ..support.world import World


def test_the_apis_are_listed_where_metrics_are_wanted() -> None:
    asked = m.ApiVersionsRequest(client_software_name="n", client_software_version="1")
    for settings, listed in (
        ({}, False),
        ({"ottla_lab_port": "0"}, True),
        ({"ottla_client_metrics": "always"}, True),
        ({"ottla_lab_port": "0", "ottla_client_metrics": "never"}, False),
    ):
        keys = {one.api_key for one in World(**settings).ask("ApiVersions", 4, asked).api_keys}
        assert ({71, 72} <= keys) is listed
        assert bool({71, 72} & keys) is listed


def test_a_client_without_an_id_gets_one_that_no_command_takes_for_an_option() -> None:
    world = World()
    found = [get(world, bytes(16)) for _ in range(50)]
    assert all(one.error_code == 0 for one in found)
    clients = world.broker.client_metrics.clients
    assert len({one.client_instance_id for one in found}) == len(clients) == 50
    assert not [one for one in clients.values() if "-" in one.instance.name]


def test_subscriptions_outlive_the_broker() -> None:
    world = World()
    alter(world, "m", metrics="a", interval_ms="5000")
    before = get(world)
    assert (before.requested_metrics, before.push_interval_ms) == (["a"], 5000)
    again = World(world.files)
    assert push(again, before.subscription_id) == 0
    assert get(again).error_code == Errors.THROTTLING_QUOTA_EXCEEDED


def test_a_subscription_that_changes_is_asked_for_at_once() -> None:
    world = World()
    alter(world, "m", metrics="a")
    before = get(world)
    alter(world, "m", metrics="b")
    assert push(world, before.subscription_id) == Errors.UNKNOWN_SUBSCRIPTION_ID
    assert get(world).requested_metrics == ["b"]
    alter(world, "m", metrics=None)
    assert get(world).requested_metrics == []
    assert world.broker.client_metrics.unknown_subscriptions == 1


def test_subscriptions_that_change_together_are_checked_and_followed_one_in_a_step() -> None:
    """Their patterns are compiled."""
    world, names = World(), ("a", "b", "c")
    changes: list[tuple[str, int, str | None]] = [("metrics", configs.SET, "x")]
    checked = configs.incremental_alter_configs(
        world.broker.metadata.controller, [(CLIENT_METRICS, name, changes) for name in names]
    )
    assert sum(1 for _ in checked) == 3 * EVENT_STEP
    replaced = configs.alter_configs(
        world.broker.metadata.controller, [(CLIENT_METRICS, name, {"metrics": "x"}) for name in names]
    )
    assert sum(1 for _ in replaced) == 3 * EVENT_STEP
    delta = MetadataDelta(world.broker.image)
    delta.configs = {(CLIENT_METRICS, name): None for name in names}
    assert sum(1 for _ in world.broker.client_metrics.metadata_changed(delta)) == 3 * STEP_CHANGES


def test_a_client_is_forgotten_with_its_connection_or_after_three_silent_intervals() -> None:
    world = World()
    clients = world.broker.client_metrics.clients
    alter(world, "m", metrics="a", interval_ms="30000")
    peer = Peer("PLAINTEXT", "127.0.0.1:9")
    assert get(world, peer=peer).error_code == 0
    world.broker.turn.event(peer.lost)
    assert not clients
    for _ in range(2):
        assert get(world, peer=world.peer).error_code == 0
        world.pass_ms(89_999)
        assert list(clients) == [CLIENT]
        world.pass_ms(1)
        assert not clients
    assert len(world.peer.on_lost) == 1  # however often its clients expire
    world.broker.turn.event(world.peer.lost)


def test_clients_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_metrics_manager, "INSTANCES_MAX", 3)
    world = World()
    for number in (1, 2, 3, 1, 4):
        get(world, bytes([number]) * 16)
    assert [one[0] for one in world.broker.client_metrics.clients] == [3, 1, 4]
    assert world.broker.limits.counts["client-instances"] == 1
    world.pass_ms(900_000)
    assert not world.broker.client_metrics.clients


def test_a_push_is_bounded_after_decompression_too() -> None:
    import gzip

    world = World(telemetry_max_bytes="1000")
    wanted = get(world).subscription_id
    assert push(world, wanted, bytes(1001)) == Errors.TELEMETRY_TOO_LARGE
    world.pass_ms(300_000)
    assert push(world, wanted, gzip.compress(bytes(1001)), compression_type=1) == Errors.INVALID_RECORD
    world.pass_ms(300_000)
    assert push(world, wanted, gzip.compress(bytes(1000)), compression_type=1) == 0
    client = world.broker.client_metrics.clients[CLIENT]
    assert (client.failed, client.export_ms.count) == (1, 1)


def test_the_requests_count_for_quotas(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request takes 10 ms here: 1 % of a second."""
    world = World()
    a = m.AlterClientQuotasRequest
    entity = [a.EntityData(entity_type="client-id", entity_name=None)]
    entry = a.EntryData(entity=entity, ops=[a.OpData(key="request_percentage", value=0.5)])
    assert world.ask("AlterClientQuotas", 1, a(entries=[entry])).entries[0].error_code == 0
    monkeypatch.setattr(world.schedule, "work_ns", count(0, 5_000_000).__next__)
    throttled = [get(world, bytes([number + 1]) * 16).throttle_time_ms for number in range(12)]
    assert throttled[0] == 0
    assert 0 < throttled[-1] <= 1000
    assert world.peer.throttle_ms == throttled[-1]
