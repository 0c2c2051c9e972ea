"""The TLS of one listener: the context for new connections, which follows files and configuration, and principals."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable

from ..config.listener_values import ListenerValues
from ..peer import ANONYMOUS, SecurityProtocol
from . import names
from .context import check_own_trust, server_context
from .stores import Identity, StoreError, Values, files, key_store

STORES = (
    *("ssl.key.password", "ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.keystore.location"),
    *("ssl.keystore.password", "ssl.keystore.type", "ssl.truststore.certificates", "ssl.truststore.location"),
    *("ssl.truststore.password", "ssl.truststore.type"),
)
"""The keys that can be changed while the broker runs, as in Kafka (SslConfigs.RECONFIGURABLE_CONFIGS)."""
FIXED = (
    *("ssl.allow.dn.changes", "ssl.allow.san.changes", "ssl.cipher.suites", "ssl.client.auth"),
    *("ssl.enabled.protocols", "ssl.engine.factory.class", "ssl.principal.mapping.rules", "ssl.protocol"),
)
"""The keys whose values at start hold."""


class TlsListener:
    """Makes the contexts of a listener. `values`: returns the values in force; `is_between_brokers`: whether brokers
    use the listener between themselves, so that Kafka wants its certificate trusted by itself.

    Raises StoreError for a configuration that cannot be used.
    """

    def __init__(
        self,
        name: str,
        protocol: SecurityProtocol,
        values: Callable[[], ListenerValues],
        is_between_brokers: bool,
    ) -> None:
        self.name = name
        self.protocol = protocol
        self._values = values
        self._is_between_brokers = is_between_brokers
        self._used: tuple[Values, list[object]] = {}, []
        self.start()

    def start(self) -> None:
        """Takes over the values in force, also those of keys that cannot be changed later. Raises StoreError."""
        values = self._values()
        fixed = {key: values[key] for key in FIXED}
        if self.protocol.has_sasl and values.own("ssl.client.auth") is None:
            fixed["ssl.client.auth"] = "none"  # with SASL, only the value of the listener itself counts
        try:
            mapper = names.PrincipalMapper(fixed["ssl.principal.mapping.rules"])
        except ValueError as error:
            raise StoreError("ssl.principal.mapping.rules", str(error)) from None
        used = self._state(values, fixed)
        if used != self._used:
            self.context, self._identity = self._made(used[0])
            self._fixed, self._mapper, self._used = fixed, mapper, used

    @property
    def has_key(self) -> bool:
        """Whether clients can connect at all."""
        return self._identity is not None

    @staticmethod
    def _state(values: ListenerValues, fixed: Values) -> tuple[Values, list[object]]:
        """Returns the values of the keys of TLS, and the state of the files that they name."""
        found = {**fixed, **{key: values[key] for key in STORES}}
        return found, [_state_of(path) for path in files(found)]

    def _made(self, values: Values) -> tuple[ssl.SSLContext, Identity | None]:
        store = key_store(values)
        context = server_context(values, store)
        if self._is_between_brokers:
            check_own_trust(context, values, store)
        return context, None if store is None else store.identity

    def changed(self) -> Callable[[], None] | None:
        """Returns what makes the context for new connections again, if values or files have changed since the last
        call; it may be called in a thread, and raises StoreError. The context stays as it is if that fails.
        """
        state = self._state(self._values(), self._fixed)
        if state == self._used:
            return None
        self._used = state  # what failed is not tried again before it changes
        values = state[0]

        def renew() -> None:
            self.context, self._identity = self._made(values)

        return renew

    def check(self, values: ListenerValues) -> None:
        """Checks values that the listener would have while the broker runs. Raises StoreError."""
        wanted = self._state(values, self._fixed)[0]
        _, identity = self._made(wanted)
        if self._identity is None or identity is None:
            if self._identity != identity:
                verb = "remove the SSL keystore from" if identity is None else "add SSL keystore to"
                raise _mismatch(f"Cannot {verb} an existing listener.")
            return
        (old_name, old_hosts), (new_name, new_hosts) = self._identity, identity
        if not self._fixed["ssl.allow.dn.changes"] and old_name.lower() != new_name.lower():
            raise _mismatch(
                f"Keystore DistinguishedName does not match:  existing={{alias=kafka, DN={old_name}}}, "
                f"new={{alias=kafka, DN={new_name}}}"
            )
        if not self._fixed["ssl.allow.san.changes"] and not old_hosts <= new_hosts:
            old, new = (", ".join(sorted(hosts)) for hosts in (old_hosts, new_hosts))
            raise _mismatch(
                f"Keystore SubjectAltNames do not match:  existing={{alias=kafka, SAN=[{old}]}}, "
                f"new={{alias=kafka, SAN=[{new}]}}"
            )

    def principal(self, certificate: bytes | None) -> str:
        """Returns the principal of a client with a certificate in DER, or without one. Raises ValueError if it has
        none that the rules allow.
        """
        if certificate is None or self.protocol.has_sasl:
            return ANONYMOUS
        return "User:" + self._mapper.principal(names.subject(certificate))


def _mismatch(words: str) -> StoreError:
    return StoreError("ssl.keystore.location", words, "config.ConfigException")


def _state_of(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
