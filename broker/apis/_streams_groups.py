"""Helpers of the streams group APIs."""

from __future__ import annotations

from ...protocol.errors import ApiError, Errors
from ..net.context import Context


def is_enabled(context: Context) -> bool:
    """Whether the finalized `streams.version` supports KIP-1071, and `group.coordinator.rebalance.protocols` contains
    `streams`.
    """
    broker = context.broker
    return (
        "streams" in broker.config["group.coordinator.rebalance.protocols"]
        and int(broker.image.features.get("streams.version", 0)) >= 1
    )


def check_enabled(context: Context) -> None:
    """Raises ApiError(UNSUPPORTED_VERSION)."""
    if not is_enabled(context):
        raise ApiError(Errors.UNSUPPORTED_VERSION)
