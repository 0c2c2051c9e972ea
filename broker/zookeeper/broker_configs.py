"""The dynamic configurations of brokers that ZooKeeper has: which keys this broker takes, and their passwords."""

from __future__ import annotations

from collections.abc import Mapping

from ...protocol import zookeeper_paths as paths
from ...protocol.config_def import ConfigKey, dynamic_broker_keys, keys
from ..config.config import Config, ConfigError
from ..config.listener_values import is_of_one_broker, key_of_listener
from ..config.rates import RATES
from .found import Values
from .passwords import DERIVATION, Passwords, Sealing

DYNAMIC_SINCE = (1, 1)
SECRET, OLD_SECRET = "password.encoder.secret", "password.encoder.old.secret"


class BrokerConfigs:
    """Raises ConfigError: passwords cannot be encrypted as the configuration says."""

    def __init__(self, config: Config, release: paths.Number) -> None:
        self._dynamic = dynamic_broker_keys(config.emulates) if release >= DYNAMIC_SINCE else frozenset[str]()
        self._release = config.emulates
        known = keys("broker", config.emulates)
        self._known = RATES | {
            name: key for name, key in known.items() if name in self._dynamic and not name.startswith("ssl.")
        }
        self._passwords = _passwords(config) if release >= DYNAMIC_SINCE else None

    def key(self, name: str, node: str) -> ConfigKey | None:
        """Returns a key that a broker, or all of them, may have; None if it is none, or a password that cannot be kept
        in ZooKeeper. Kafka takes the keys of TLS only for a listener, and most of those of listeners only for one
        broker.
        """
        found = self._known.get(name)
        if node == paths.DEFAULT_ENTITY and is_of_one_broker(name, self._release):
            found = None
        elif found is None:
            of = key_of_listener(name, self._release)
            found = of[1] if of is not None and of[1].name in self._dynamic else None
        return None if found is None or (found.type == "PASSWORD" and self._passwords is None) else found

    def learn(self, node: str, found: Values) -> None:
        """Opens the passwords of what ZooKeeper has, in the session's thread."""
        if self._passwords is not None:
            self._passwords.learn(value for name, value in found.items() if self._is_password(name, node))

    def _is_password(self, name: str, node: str) -> bool:
        key = self.key(name, node)
        return key is not None and key.type == "PASSWORD"

    def opened(self, node: str, name: str, value: str) -> str | None:
        """Returns a value of ZooKeeper as the metadata have it; None if it is a password that cannot be opened."""
        if self._passwords is None or not self._is_password(name, node):
            return value
        return self._passwords.opened(value)

    def sealed(self, node: str, here: Values, before: Mapping[str, str]) -> Values:
        """Returns values as ZooKeeper gets them. `before`: what it has; a password that is there stays as it is."""
        if self._passwords is None:
            return here
        found = dict(here)
        for name, value in here.items():
            if self._is_password(name, node):
                was = before.get(name)
                is_same = was is not None and self._passwords.is_current(was) and self._passwords.opened(was) == value
                found[name] = was if is_same and was is not None else self._passwords.sealed(value)
        return found


def _passwords(config: Config) -> Passwords | None:
    """Raises ConfigError."""
    secret: str | None = config[SECRET]
    if secret is None:
        return None
    algorithm = config["password.encoder.keyfactory.algorithm"] or DERIVATION
    lengths = config["password.encoder.key.length"], algorithm, config["password.encoder.iterations"]
    sealing = Sealing(config["password.encoder.cipher.algorithm"], *lengths)
    if sealing.fault is not None:
        raise ConfigError(config.where[SECRET], f"password.encoder: {sealing.fault}")
    return Passwords(sealing, secret, config[OLD_SECRET])
