"""DescribeUserScramCredentials, version 0: which users have SCRAM credentials, and of which mechanisms (KIP-554)."""

from __future__ import annotations

from typing import Any

from ...coordinator.metadata import credentials
from ...protocol import messages
from ..context import Context


def handle(context: Context, request: Any) -> Any:
    r = messages.DescribeUserScramCredentialsResponse
    response = r()
    for user, records, error in credentials.described(context.broker.image, [one.name for one in request.users or ()]):
        infos = [r.CredentialInfo(mechanism=record.mechanism, iterations=record.iterations) for record in records]
        result = r.DescribeUserScramCredentialsResult(user=user, credential_infos=infos)
        if error is not None:
            result.error_code, result.error_message = error.code, error.message
        response.results.append(result)
    return response
