"""AlterUserScramCredentials, version 0: SCRAM credentials deleted and upserted (KIP-554)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...coordinator.metadata import credentials
from ...protocol import messages
from ...protocol.errors import ApiError
from ..context import Context


async def handle(context: Context, request: Any) -> Any:
    metadata = context.broker.metadata
    return _told(await metadata.submit(lambda: credentials.alter(metadata.controller, request)))


def failed(context: Context, request: Any, error: ApiError) -> Any:
    return _told((user, error) for user in credentials.users_of(request))


def _told(outcome: Iterable[tuple[str, ApiError | None]]) -> Any:
    r = messages.AlterUserScramCredentialsResponse
    results = []
    for user, error in outcome:
        result = r.AlterUserScramCredentialsResult(user=user, error_message=None)
        if error is not None:
            result.error_code, result.error_message = error.code, error.message
        results.append(result)
    return r(results=results)
