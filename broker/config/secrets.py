"""Which configuration values, and which fields of messages, are secrets."""

from __future__ import annotations

import re

from ...protocol.config_def import keys
from ...protocol.text import Json
from .config import AUTHORIZER_KEYS, OWN_KEYS, SYSTEM_PROPERTIES, ZOOKEEPER_KEYS
from .listener_values import key_of_listener

SENSITIVE = frozenset(("auth_bytes", "hmac", "salt", "salted_password", "password"))  # fields of messages
MASK = "***"
HIDDEN = "[hidden]"  # in messages, as Kafka writes it

_OF_A_NODE = re.compile(r"\Aottla\.node\.[0-9]+\.")
OURS = (OWN_KEYS, AUTHORIZER_KEYS, SYSTEM_PROPERTIES, ZOOKEEPER_KEYS)


def is_secret(name: str) -> bool:
    """Whether a value must not be shown: Kafka hides those of passwords, and of keys that it does not know."""
    name = _OF_A_NODE.sub("", name)
    for known in (*map(keys, ("topic", "broker", "group")), *OURS):
        key = known.get(name)
        if key is not None:
            return key.type == "PASSWORD"
    of_listener = key_of_listener(name)
    return of_listener is None or of_listener[1].type == "PASSWORD"


def masked(plain: Json) -> Json:
    """Returns a message with sensitive fields and configuration values masked."""
    if isinstance(plain, dict):
        if "name" in plain and "value" in plain and is_secret(str(plain["name"])) and plain["value"]:
            plain = {**plain, "value": MASK}
        return {name: MASK if name in SENSITIVE and value else masked(value) for name, value in plain.items()}
    if isinstance(plain, list):
        return [masked(item) for item in plain]
    return plain
