"""TLS to ZooKeeper, as Kafka 2.5 to 3.9 have it: `zookeeper.ssl.*`.

The keys name stores as those of listeners do. ZooKeeper's own client, which reads them in Kafka, tells the types of
stores from the names of files, and takes a password for the key of a PEM store.
"""

from __future__ import annotations

import ssl
from pathlib import PurePath
from typing import Final

from kazoo.handlers.threading import SequentialThreadingHandler

from ..config.config import Config, ConfigError
from ..config.listener_values import Value
from ..tls.context import client_context
from ..tls.stores import StoreError

PREFIX: Final = "zookeeper."
ENABLE: Final = f"{PREFIX}ssl.client.enable"
KEY_STORE: Final = f"{PREFIX}ssl.keystore.location"
ALGORITHM: Final = "zookeeper.ssl.endpoint.identification.algorithm"
Ready = tuple[list[object], list[object], list[object]]
_TYPES: Final = {".jks": "JKS", ".p12": "PKCS12", ".pem": "PEM"}


def has_tls(config: Config) -> bool:
    """Whether the broker connects with TLS; releases before 2.5 have no such key."""
    return bool(config.values.get(ENABLE))


def proves_itself(config: Config) -> bool:
    """Whether the broker has a certificate for ZooKeeper, which may then know it by that."""
    return has_tls(config) and config[KEY_STORE] is not None


def context_of(config: Config) -> ssl.SSLContext:
    """Returns the context of connections. Raises ConfigError for stores and values that cannot be used."""
    try:
        context = client_context(_values(config))
    except StoreError as error:
        key = f"{PREFIX}{error.key}"
        raise ConfigError(config.where.get(key, key), f"{key}: {error}") from None
    algorithm = config[ALGORITHM] or ""
    context.check_hostname = algorithm.upper() == "HTTPS"
    return context


def _values(config: Config) -> dict[str, Value]:
    """Returns the values as those of a listener."""
    names = ("protocol", "enabled.protocols", "cipher.suites", "keystore.location", "truststore.location")
    found: dict[str, Value] = {f"ssl.{name}": config[f"{PREFIX}ssl.{name}"] for name in names}
    found["ssl.enabled.protocols"] = found["ssl.enabled.protocols"] or [found["ssl.protocol"]]
    for store in ("ssl.keystore", "ssl.truststore"):
        kind = config[f"{PREFIX}{store}.type"] or _TYPES.get(PurePath(found[f"{store}.location"] or "").suffix, "JKS")
        found[f"{store}.type"] = kind
        found[f"{store}.password"] = None if kind == "PEM" else config[f"{PREFIX}{store}.password"]
    is_pem = found["ssl.keystore.type"] == "PEM"
    found["ssl.key.password"] = config[f"{PREFIX}ssl.keystore.password"] if is_pem else None
    rest = ("keystore.key", "keystore.certificate.chain", "truststore.certificates", "engine.factory.class")
    return found | {f"ssl.{name}": None for name in rest}


class TlsHandler(SequentialThreadingHandler):  # type: ignore[misc]
    """Makes the connections of kazoo, whose own TLS takes keys and certificates from files in PEM only."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__()
        self._context = context

    def create_connection(self, address: tuple[str, int], hostname: str, timeout: float, **_: object) -> ssl.SSLSocket:
        plain = super().create_connection(address, timeout=timeout)
        try:
            plain.settimeout(timeout)
            return self._context.wrap_socket(plain, server_hostname=hostname)
        except BaseException:
            plain.close()
            raise

    def select(self, readers: list[object], *more: object) -> Ready:
        """Returns at once what has bytes that were decrypted already: the system does not know of them."""
        ready: list[object] = [one for one in readers if isinstance(one, ssl.SSLSocket) and one.pending()]
        if ready:
            return ready, [], []
        found: Ready = super().select(readers, *more)
        return found
