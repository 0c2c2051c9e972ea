"""What clients hear instead of the error while they connect: when they ask for versions, and when they log in."""

from __future__ import annotations

from typing import Final

from .error_clients import Heard
from .error_differences import NO_CODE, NOTHING, each

AUTHENTICATION: Final = -169  # librdkafka's own code for a login that failed
_VERSIONS: Final = ("UNSUPPORTED_VERSION", "INVALID_REQUEST", "REBOOTSTRAP_REQUIRED")
_HANDSHAKE: Final = ("UNSUPPORTED_SASL_MECHANISM", "ILLEGAL_SASL_STATE")
_AUTHENTICATE: Final = (*_HANDSHAKE, "SASL_AUTHENTICATION_FAILED")

INSTEAD: dict[tuple[str, str], dict[str, Heard]] = {
    # it asks in a version that the broker has, closes the connection and connects again, or bootstraps again
    # (NetworkClient, handleApiVersionsResponse)
    ("java", "ApiVersions"): each(_VERSIONS, NOTHING),
    # it asks in version 0, or connects again (rdkafka_broker.c, rd_kafka_broker_handle_ApiVersion)
    ("librdkafka", "ApiVersions"): each(_VERSIONS, NOTHING),
    # its own code whatever the error (rdkafka_broker.c, rd_kafka_broker_handle_SaslHandshake)
    ("librdkafka", "SaslHandshake"): each(_HANDSHAKE, AUTHENTICATION),
    # likewise for this one, as it says for compatibility (rdkafka_request.c, rd_kafka_handle_SaslAuthenticate)
    ("librdkafka", "SaslAuthenticate"): each(("SASL_AUTHENTICATION_FAILED",), AUTHENTICATION),
    # it asks in a version that the broker has; another error it cannot read, because it takes each reply with one for a
    # reply of version 0 (ApiVersionsResponse.decode), and it connects again
    ("kafka-python", "ApiVersions"): each(_VERSIONS, NOTHING),
    # it says so in its log, and bootstraps again until its time is over (KafkaConnectionManager._do_bootstrap)
    ("kafka-python", "SaslHandshake"): each(_HANDSHAKE, NOTHING),
    ("kafka-python", "SaslAuthenticate"): each(_AUTHENTICATE, NOTHING),
    # it does not look at the error, and takes the broker for one without APIs (AIOKafkaConnection._do_version_lookup)
    ("aiokafka", "ApiVersions"): each(_VERSIONS, NO_CODE),
    # the error is in its log; its exception says that no broker was reached, and has no code (AIOKafkaClient.bootstrap)
    ("aiokafka", "SaslHandshake"): each(_HANDSHAKE, NO_CODE),
    ("aiokafka", "SaslAuthenticate"): each(_AUTHENTICATE, NO_CODE),
    # it asks in version 0 (brokerCxn.requestAPIVersions)
    ("franz-go", "ApiVersions"): each(("UNSUPPORTED_VERSION",), NOTHING),
    # it does not look at the error, and goes on with the versions of its configuration (broker.go, Open)
    ("sarama", "ApiVersions"): each(_VERSIONS, NOTHING),
    # only SASL_AUTHENTICATION_FAILED is no reason to try the next address, or the same again (client.go,
    # tryRefreshMetadata)
    ("sarama", "SaslHandshake"): each(_HANDSHAKE, NOTHING),
    ("sarama", "SaslAuthenticate"): each(_HANDSHAKE, NOTHING),
    # it asks in the version before (Broker.apiVersions)
    ("kafkajs", "ApiVersions"): each(("UNSUPPORTED_VERSION",), NOTHING),
    # its error has Kafka's words, and no code (scram.js, authenticate)
    ("kafkajs", "SaslAuthenticate"): each(_AUTHENTICATE, "SASL SCRAM SHA256 authentication failed: "),
}
