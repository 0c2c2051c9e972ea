"""SaslHandshake, versions 0 and 1: returns ILLEGAL_SASL_STATE, as Kafka does on a listener without SASL (KIP-43)."""

from __future__ import annotations

from ...protocol import messages
from ...protocol.errors import Errors
from ..error_places import Place, codes
from ..net.context import Context
from ..security.authorization import Authorization

AUTHORIZATION: Authorization = ()
ERRORS = (Place("the whole", codes("UNSUPPORTED_SASL_MECHANISM ILLEGAL_SASL_STATE")),)


def handle(context: Context, request: messages.SaslHandshakeRequest) -> messages.SaslHandshakeResponse:
    return messages.SaslHandshakeResponse(error_code=Errors.ILLEGAL_SASL_STATE)
