"""RenewDelegationToken, versions 1 and 2: lets a delegation token live longer, up to its last moment (KIP-48).

**Behaviour**
- The token's owner and its renewers may do it; others get DELEGATION_TOKEN_OWNER_MISMATCH. No ACL is asked.

**Versions**
- 2 flexible
"""

from __future__ import annotations

from ...coordinator.metadata import tokens
from ...protocol import messages
from ..net.context import Context
from ..security.authorization import Authorization
from ._tokens import OF_A_CHANGE, change

AUTHORIZATION: Authorization = ()
ERRORS = OF_A_CHANGE


async def handle(
    context: Context, request: messages.RenewDelegationTokenRequest
) -> messages.RenewDelegationTokenResponse:
    return await change(context, request, tokens.renew, messages.RenewDelegationTokenResponse)
