"""The client of kazoo: where ZooKeeper is, who this broker is there, and who may read and write what it makes.

As Kafka's, the broker logs in with the section `Client` of the JAAS file, if there is one, or with a certificate. With
`zookeeper.set.acl` only who has logged in so may write the nodes that it makes, and what has secrets only that one may
read.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from kazoo.client import KazooClient
from kazoo.security import OPEN_ACL_UNSAFE, READ_ACL_UNSAFE, make_acl

from ...protocol import zookeeper_paths as paths
from ...protocol.config_def import numbers_of
from ...protocol.zookeeper_paths import Number
from ..config.config import LOGIN_CONFIG, Config, ConfigError
from ..config.jaas_file import entry_of, load_sections
from .tls import TlsHandler, context_of, has_tls, proves_itself

if TYPE_CHECKING:
    from kazoo.security import ACL

SECTION: Final = "Client"
DIGEST: Final = "org.apache.zookeeper.server.auth.DigestLoginModule"
SET_ACL: Final = "zookeeper.set.acl"
_OWN: Final = make_acl("auth", "", all=True)  # ZooKeeper puts in whoever has logged in
_SECRET: Final = (  # with what begins like these
    ((0, 10, 2), f"{paths.CONFIG}/{paths.USERS}"),
    ((1, 1), f"{paths.CONFIG}/{paths.BROKERS}"),
    ((1, 1), paths.TOKENS),
)


def acls_of(path: str, release: Number) -> list[ACL]:
    """Returns who may do what with a node that is made with `zookeeper.set.acl`: as in Kafka, consumers may make nodes
    below CONSUMERS, but for 1.1, and all may write the epoch of the controller before 0.11.
    """
    is_open = release != (1, 1) if path == paths.CONSUMERS else path == paths.CONTROLLER_EPOCH and release < (0, 11)
    if is_open:
        return list(OPEN_ACL_UNSAFE)
    is_secret = any(release >= since and path.startswith(root) for since, root in _SECRET)
    return [_OWN] if is_secret else [_OWN, *READ_ACL_UNSAFE]


class SecuredClient(KazooClient):  # type: ignore[misc]
    """A client that protects the nodes that it makes."""

    def __init__(self, release: Number, **options: object) -> None:
        super().__init__(**options)
        self._release = release

    def create_async(self, path: str, value: bytes = b"", acl: object = None, **options: bool) -> object:
        return super().create_async(path, value, acl=acls_of(path, self._release), **options)


def client_of(config: Config, *, reads_only: bool = False) -> KazooClient:
    """Returns a client for the hosts of `zookeeper.connect`, which connects later. `reads_only`: a server that has lost
    the others will do, too. Raises ConfigError.
    """
    hosts: str = config["zookeeper.connect"]
    own = logging.getLogger("ottla.kafka.zookeeper.kazoo")
    if not own.isEnabledFor(logging.DEBUG):
        own.setLevel(logging.ERROR)  # it would warn of each attempt to connect
    login = _login(config)
    timeout_s = config["zookeeper.session.timeout.ms"] / 1000
    options = {"hosts": hosts, "timeout": timeout_s, "logger": own, "read_only": reads_only}
    if has_tls(config):
        options["handler"] = TlsHandler(context_of(config))
    if login is not None:
        options["sasl_options"] = login
    try:
        if not config[SET_ACL]:
            return KazooClient(**options)
        return SecuredClient(numbers_of(config.emulates or ""), **options)
    except ValueError:
        raise ConfigError(
            config.where["zookeeper.connect"], f"zookeeper.connect: {hosts!r} is not HOST:PORT[,HOST:PORT…][/PATH]"
        ) from None


def _login(config: Config) -> dict[str, str] | None:
    """Returns how the broker logs in; None if it does not. Raises ConfigError."""
    entries = (load_sections(config) or {}).get(SECTION)
    if entries is None:
        if config[SET_ACL] and not proves_itself(config):
            words = f"{SET_ACL} is true, and no JAAS file ({LOGIN_CONFIG}) has a section {SECTION} with a login"
            raise ConfigError(config.where[SET_ACL], words)
        return None
    where, entry = config.where[LOGIN_CONFIG], entry_of(entries, DIGEST)
    if entry is None or not {"username", "password"} <= entry.options.keys():
        words = f"the section {SECTION} needs {DIGEST} with username and password; ottla knows no other login there"
        raise ConfigError(where, f"{LOGIN_CONFIG}: {words}")
    return {
        "mechanism": "DIGEST-MD5",
        "username": entry.options["username"],
        "password": entry.options["password"],
    }
