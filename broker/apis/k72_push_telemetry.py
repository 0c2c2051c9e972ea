"""PushTelemetry, version 0: takes metrics of a client, in the format of OpenTelemetry (KIP-714).

**Behaviour**
- The client may push once per interval, and at any time after it has got its subscriptions or when it ends. After its
  last push it gets INVALID_REQUEST once.
- Metrics of other subscriptions than those that the client has now get UNKNOWN_SUBSCRIPTION_ID.
- `telemetry.max.bytes` bounds a push: TELEMETRY_TOO_LARGE as sent, INVALID_RECORD after decompression.
- What is not OTLP gets INVALID_RECORD, if ottla takes metrics of clients (`ottla.client.metrics`).

**State**
- A client is known until its connection ends, or it is silent for three intervals.
"""

from __future__ import annotations

from ...protocol import messages
from ..error_places import Place, codes
from ..net.context import Context
from ..security.authorization import Authorization

AUTHORIZATION: Authorization = ()
ERRORS = (
    Place(
        "the whole",
        codes(
            "INVALID_REQUEST INVALID_RECORD THROTTLING_QUOTA_EXCEEDED UNKNOWN_SUBSCRIPTION_ID TELEMETRY_TOO_LARGE "
            "UNSUPPORTED_COMPRESSION_TYPE"
        ),
    ),
)


async def handle(context: Context, request: messages.PushTelemetryRequest) -> messages.PushTelemetryResponse:
    await context.broker.client_metrics.push(context.peer, context.client_id, request)
    return messages.PushTelemetryResponse()
