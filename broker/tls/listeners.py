"""The listeners of a broker that have TLS."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...protocol.config_def import ConfigInvalid
from ..config.config import Config, ConfigError
from ..config.listener_values import PREFIX, ListenerValues
from ..peer import SecurityProtocol

if TYPE_CHECKING:
    from .listener import TlsListener

LAB = "LAB"
"""The name by which the lab's port has keys of TLS."""


def tls_listeners(config: Config, values: Callable[[str], ListenerValues]) -> dict[str, TlsListener]:
    """Returns the listeners with TLS by name. `values`: returns the values in force for a listener.

    Raises ConfigError for keys, certificates and other values that cannot be used.
    """
    found = {}
    for listener in config.listeners:
        protocol = config.security_protocol(listener.name)
        if protocol.has_tls:
            found[listener.name] = _made(config, listener.name, protocol, values)
    if config["ottla.lab.tls"] and LAB not in found:
        # as with SASL, clients have other means to say who they are: only the lab's own `ssl.client.auth` counts
        found[LAB] = _made(config, LAB, SecurityProtocol.SASL_SSL, values)
        if not found[LAB].has_key:
            raise ConfigError(
                config.where["ottla.lab.tls"],
                "ottla.lab.tls needs a certificate: set ssl.keystore.location, or "
                "listener.name.lab.ssl.keystore.location",
            )
    return found


def _made(
    config: Config, name: str, protocol: SecurityProtocol, values: Callable[[str], ListenerValues]
) -> TlsListener:
    from .listener import TlsListener
    from .stores import StoreError

    given = config["inter.broker.listener.name"] or config.given.get("security.inter.broker.protocol", "")
    try:
        return TlsListener(name, protocol, lambda: values(name), given.upper() == name)
    except ConfigInvalid as error:
        key = f"{PREFIX}{name.lower()}.{error.name}"
        raise ConfigError(config.where.get(key, key), str(error)) from None
    except StoreError as error:
        own = f"{PREFIX}{name.lower()}.{error.key}"
        key = own if own in config.given else error.key
        raise ConfigError(config.where.get(key, key), f"{key}: {error}") from None
