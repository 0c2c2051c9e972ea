"""Failures of SASL exchanges."""

from __future__ import annotations


class SaslFailed(Exception):
    """The client's credentials or its message are refused; the exchange has ended.

    `words`: the message for the client (Java's SaslAuthenticationException). Without words the client gets Kafka's
    message, that the credentials are invalid (Java's SaslException). `reason`: the message for the log.
    """

    def __init__(self, words: str | None = None, reason: str = "") -> None:
        super().__init__(words or reason)
        self.words = words
        self.reason = reason or words or "invalid credentials"
