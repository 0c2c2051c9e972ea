"""GetTelemetrySubscriptions, version 0: returns the metrics that a client shall push, and how often (KIP-714).

**Behaviour**
- A client without an id gets one.
- A client that comes before its interval is over gets THROTTLING_QUOTA_EXCEEDED, unless the subscriptions have changed
  or its last push was refused with an error after which clients ask at once.

**State**
- ApiVersions lists this API only if ottla takes metrics of clients (`ottla.client.metrics`), as Kafka lists it only if
  there is a plug-in that does. It is served in any case.
"""

from __future__ import annotations

from ...protocol import compression, messages
from ..error_places import Place, codes
from ..net.context import Context
from ..security.authorization import Authorization

AUTHORIZATION: Authorization = ()
ERRORS = (Place("the whole", codes("INVALID_REQUEST THROTTLING_QUOTA_EXCEEDED")),)
CODECS = [compression.ZSTD, compression.LZ4, compression.GZIP, compression.SNAPPY]  # the best one first


def handle(
    context: Context, request: messages.GetTelemetrySubscriptionsRequest
) -> messages.GetTelemetrySubscriptionsResponse:
    manager = context.broker.client_metrics
    instance_id, instance = manager.get(context.peer, context.client_id, request.client_instance_id)
    return messages.GetTelemetrySubscriptionsResponse(
        client_instance_id=instance_id,
        subscription_id=instance.wanted.subscription_id,
        accepted_compression_types=list(CODECS),
        push_interval_ms=instance.wanted.interval_ms,
        telemetry_max_bytes=manager.bytes_max,
        delta_temporality=True,
        requested_metrics=list(instance.wanted.metrics),
    )
