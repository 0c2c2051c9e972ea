"""Brokers and controllers that are registered no more."""

from __future__ import annotations

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..shard import Result
from .controller import Controller


def unregister_controller(controller: Controller, active: int, controller_id: int) -> Result[None]:
    """Forgets a controller. `active`: the id of the active one. Raises ApiError(INVALID_REQUEST): it is the active one;
    ApiError(CONTROLLER_ID_NOT_REGISTERED).
    """
    if controller_id == active:
        raise ApiError(Errors.INVALID_REQUEST, "Controller cannot unregister itself while it is active.")
    if controller_id not in controller.state.controllers:
        text = f"Controller ID {controller_id} is not currently registered."
        raise ApiError(Errors.CONTROLLER_ID_NOT_REGISTERED, text)
    return Result([messages.UnregisterControllerRecord(controller_id=controller_id)], None)
