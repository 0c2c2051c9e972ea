"""Ids as text: a Java UUID for classic members, Kafka's base64 for members of consumer groups."""

from __future__ import annotations

import base64


def uuid_text(value: bytes) -> str:
    assert len(value) == 16
    digits = value.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def kafka_uuid(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")
