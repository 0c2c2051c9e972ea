"""CreateAcls, versions 1 to 3: SECURITY_DISABLED for each, as from a Kafka without an authorizer. 2 flexible; 3 user resources (KIP-373)."""

from __future__ import annotations

from typing import Any

from ...protocol import messages
from ...protocol.errors import Errors
from ..context import Context

NO_AUTHORIZER = "No Authorizer is configured."


def handle(context: Context, request: Any) -> Any:
    r = messages.CreateAclsResponse
    return r(results=[r.AclCreationResult(error_code=Errors.SECURITY_DISABLED, error_message=NO_AUTHORIZER) for _ in request.creations])
