"""SaslAuthenticate, versions 0 to 2: returns ILLEGAL_SASL_STATE, as Kafka does on a listener without SASL (KIP-152).

**Versions**
- 2 flexible
"""

from __future__ import annotations

from ...protocol import messages
from ...protocol.errors import Errors
from ..error_places import Place, Text, codes
from ..net.context import Context
from ..security.authorization import Authorization

AUTHORIZATION: Authorization = ()
AUTHENTICATED = "SaslAuthenticate request received after successful authentication"
ERRORS = (
    Place(
        "the whole", codes("UNSUPPORTED_SASL_MECHANISM ILLEGAL_SASL_STATE SASL_AUTHENTICATION_FAILED"), text=Text.OWN
    ),
)


def handle(context: Context, request: messages.SaslAuthenticateRequest) -> messages.SaslAuthenticateResponse:
    return messages.SaslAuthenticateResponse(error_code=Errors.ILLEGAL_SASL_STATE, error_message=AUTHENTICATED)
