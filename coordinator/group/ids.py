"""Ids as text: a Java UUID for classic members, Kafka's base64 for members of consumer groups."""

from __future__ import annotations

import base64
import uuid


def uuid_text(value: bytes) -> str:
    return str(uuid.UUID(bytes=value))


def kafka_uuid(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")
