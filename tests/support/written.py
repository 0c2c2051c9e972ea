"""Messages as lines of a trace have them."""

from __future__ import annotations

import json
from typing import Any

from ottla.protocol import headers
from ottla.protocol.json_text import Masks, json_writer

MASKS = Masks(frozenset(), lambda name: False, "")
APIS = [name for key in range(100) if (name := headers.request_name(key)) is not None]
NAMES = [*APIS, *(f"{name.removesuffix('Request')}Response" for name in APIS)]


def written(name: str, version: int, value: Any) -> Any:
    return json.loads(json_writer(name, version, MASKS)(value))
