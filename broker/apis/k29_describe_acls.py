"""DescribeAcls, versions 1 to 3: SECURITY_DISABLED, as from a Kafka without an authorizer. 2 flexible; 3 user resources (KIP-373)."""

from __future__ import annotations

from typing import Any

from ...protocol import messages
from ...protocol.errors import Errors
from ..context import Context


def handle(context: Context, request: Any) -> Any:
    return messages.DescribeAclsResponse(error_code=Errors.SECURITY_DISABLED, error_message="No Authorizer is configured on the broker")
