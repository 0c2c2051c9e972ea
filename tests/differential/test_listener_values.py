"""Values of `listeners` that a broker gets while it runs: which Kafka takes, though none opens before the next start,
and with which words it refuses the others.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..support.differential import Pair
from ..support.secured import MAP, SETTINGS, alter_broker, log_in, secured_brokers

pytestmark = pytest.mark.slow
OPEN = "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"
kafka, ours, settled = secured_brokers(
    {
        **SETTINGS,
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:9093",
        "advertised.listeners": OPEN,
        "inter.broker.listener.name": "PLAINTEXT",
        MAP: "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
    },
    "PLAIN",
    b"\0admin\0admin-secret",
)
PLAIN, SASL, CONTROLLER = "PLAINTEXT://127.0.0.1:19091", "SASL_PLAINTEXT://h:19095", "CONTROLLER://127.0.0.1:19093"
AT = "SASL_PLAINTEXT://"
UNREADABLE = ("nonsense", "", "x,y", AT[:-3], AT[:-2], AT, f"{AT}h", f"{AT}h:", f"{AT}h:x", f"{AT}a b:1", f"{AT}h/x:5")
NUMBERS = (f"{AT}h:-1", f"{AT}h:99999", f"{AT}h:99999999999", f"{AT}127.0.0.1:19095:5", f"{AT}::1:5", f"{AT}[::1:5")
NAMES = (
    "://h:1",
    "A://h:1",
    "A B://h:1",
    f"{SASL},A://h:1",
    f"{SASL},nonsense",
    f"{SASL},{PLAIN}",
    "sasl_plaintext://h:1",
)
SHARED = (
    ("h", "g", "127.0.0.2"),
    ("127.0.0.1", "127.0.0.2", "h"),
    ("127.0.0.1", "[::1]", "h"),
    ("127.0.0.1", "", "[::1]"),
    ("[::1]", "[::2]", "h"),
    ("127.0.0.1", "127.0.0.2", "127.0.0.3"),
    ("h", "", "127.0.0.1"),
)


def values() -> Iterator[str]:
    yield from (",", "nonsense", "")
    for one in (*UNREADABLE, *NUMBERS, *NAMES, SASL, f"{AT}:1", f"{AT}h:0", f"{SASL},{SASL}"):
        yield f"{PLAIN},{one},{CONTROLLER}"
    yield from (SASL, f"{PLAIN},{SASL}", f"{SASL},{CONTROLLER}", f"{PLAIN},{CONTROLLER}", CONTROLLER)
    for plain, sasl, controller in SHARED:
        for port in (1, 2):
            yield f"PLAINTEXT://{plain}:1,SASL_PLAINTEXT://{sasl}:1,CONTROLLER://{controller}:{port}"


def test_values_of_listeners(pair: Pair) -> None:
    log_in(pair, b"\0admin\0admin-secret")
    for value in values():
        alter_broker(pair, {"listeners": value})
        alter_broker(pair, {"listeners": None})
    assert pair.errors("IncrementalAlterConfigs") == {"NONE", "INVALID_REQUEST"}
