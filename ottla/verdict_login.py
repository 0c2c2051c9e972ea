"""The examination `login` of `ottla verdict`: a client logs in with SASL, and again before its session is
over (KIP-368).

A session is longer than the ten seconds before its end at which kafkajs logs in again: with a shorter one it would do
nothing else. Only these two rules count.
"""

from __future__ import annotations

from typing import Final

NAME: Final = "login"
RULES: Final = ("KIP-368.reauthenticated", "KIP-152.tokens-framed")
USER, PASSWORD, MECHANISM = "examined", "examined-secret", "PLAIN"
PROTOCOL: Final = "SASL_PLAINTEXT"
SESSION_MS: Final = 12_000
SETTINGS: Final[dict[str, object]] = {
    "ottla.users": f"{USER}:{PASSWORD}:{MECHANISM}",
    "connections.max.reauth.ms": SESSION_MS,
}
STEP: Final = f"a session of {SESSION_MS // 1000} s comes to its end"
