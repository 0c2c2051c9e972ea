"""ListPartitionReassignments, version 0: there are none, as there is one node (KIP-455)."""

from __future__ import annotations

from typing import Any

from ...protocol import messages
from ..context import Context


def handle(context: Context, request: Any) -> Any:
    return messages.ListPartitionReassignmentsResponse(error_message=None)
