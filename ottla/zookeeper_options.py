"""How commands reach a ZooKeeper: with TLS and a login as `ottla serve` does, from the same keys."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

import click

from .broker.config.config import LOGIN_CONFIG, SYSTEM_PROPERTIES, Config, ConfigError, zookeeper_keys
from .broker.config.sources import from_arguments, from_environment, from_file, parse
from .protocol.config_def import ConfigKey, keys_in_force

F = TypeVar("F", bound=Callable[..., object])
CONNECT: Final = "zookeeper.connect"
SET_ACL: Final = "zookeeper.set.acl"
SSL: Final = "zookeeper.ssl."
RELEASE: Final = "3.9"
"""The last release with a ZooKeeper, which had all keys of earlier ones."""


def zookeeper_keys_option(function: F) -> F:
    """Adds the option for single keys, the parameter `zookeeper_keys`."""
    words = f"A key such as {SSL}client.enable=true or {LOGIN_CONFIG}=FILE; overrides -c."
    option = click.option("-o", "--zookeeper-key", "zookeeper_keys", multiple=True, metavar="KEY=VALUE", help=words)
    return option(function)


def known_keys() -> dict[str, ConfigKey]:
    """Returns the keys that say how ZooKeeper is reached. `zookeeper.set.acl` is not one of them: consumers have to
    write what a command makes.
    """
    of_tls = {name: key for name, key in keys_in_force("broker", RELEASE).items() if name.startswith(SSL)}
    found = {**zookeeper_keys(RELEASE), **of_tls, LOGIN_CONFIG: SYSTEM_PROPERTIES[LOGIN_CONFIG]}
    del found[SET_ACL]
    return found


def zookeeper_config(connect: str, files: Iterable[str], arguments: Iterable[str]) -> Config:
    """Returns the configuration of a client of a ZooKeeper. `files`: those of brokers, of which other keys do not
    matter; `arguments`: `key=value`. A later source overrides an earlier one. Raises ConfigError.
    """
    known = known_keys()
    given = list(from_arguments(arguments))
    for name, _, where in given:
        if name not in known or name == CONNECT:
            raise ConfigError(where, f"{name} does not say how ZooKeeper is reached: zookeeper.ssl.*, {LOGIN_CONFIG}")
    sources = [from_environment(os.environ), *map(from_file, files), given, [(CONNECT, connect, "--zookeeper")]]
    config = Config({SET_ACL: False})
    for source in sources:
        for name, value, where in source:
            if name in known:
                config.given[name], config.where[name] = value, where
    parse(config, known)
    return config
