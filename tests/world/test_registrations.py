"""Brokers and controllers that are registered no more."""

from __future__ import annotations

from typing import Any

from ottla.coordinator.shard import Result
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.world import World


def written(world: World, record: Any) -> None:
    """Lets the controller write a record, as in another life of the directory."""
    later = world.broker.metadata.submit(lambda: Result([record]))
    world.broker.turn.settle()
    world.pass_ms(10)
    assert later.done
    assert later.error is None


def unregister(world: World, controller_id: int) -> int:
    reply = world.ask("UnregisterController", 0, m.UnregisterControllerRequest(controller_id=controller_id))
    return int(reply.error_code)


def test_a_controller_of_another_life_is_forgotten_for_good() -> None:
    world = World()
    written(world, m.RegisterControllerRecord(controller_id=2))
    assert sorted(world.broker.image.controllers) == [1, 2]
    assert unregister(world, 2) == Errors.NONE
    assert unregister(world, 2) == Errors.CONTROLLER_ID_NOT_REGISTERED
    assert unregister(world, 1) == Errors.INVALID_REQUEST
    assert sorted(world.broker.image.controllers) == [1]
    assert sorted(World(world.lose_power()).broker.image.controllers) == [1]
