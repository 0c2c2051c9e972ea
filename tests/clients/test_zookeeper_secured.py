"""A broker that logs in to a real ZooKeeper, and keeps what it makes there from others (`zookeeper.set.acl`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from kazoo.exceptions import NoAuthError
from ottla.protocol import messages as m

from ottla.testing import BrokerFailed

from ..oracle.zookeeper import ZooKeeperServer
from ..support.poll import until
from ..support.sources import ROOT
from ..support.wire import Wire
from .zookeeper_brokers import registered

pytestmark = pytest.mark.slow
RECORDED: dict[str, Any] = json.loads((ROOT / "tests/oracle/recorded/zookeeper_acls.json").read_text())
RELEASES = ("0.9", "0.10.0", "0.10.2", "0.11", "1.0", "1.1", "2.8", "3.9")
SETTINGS: dict[str, Any] = {
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super_users": "User:ANONYMOUS",
    "delegation_token_secret_key": "key",
    "zookeeper_set_acl": True,
}


@pytest.fixture(scope="module")
def secured() -> Iterator[ZooKeeperServer]:
    """A ZooKeeper in which `kafka` may log in; the client of the tests does not."""
    with ZooKeeperServer(user=("kafka", "secret")) as server:
        yield server


def may(server: ZooKeeperServer, path: str) -> list[list[object]]:
    return sorted([one.id.scheme, one.id.id, one.perms] for one in server.client.get_acls(path)[0])


def paths_below(server: ZooKeeperServer, path: str) -> Iterator[str]:
    yield path
    try:
        children = server.client.get_children(path)
    except NoAuthError:
        return
    for child in children:
        yield from paths_below(server, f"{path}/{child}")


@pytest.mark.parametrize(("release", "version"), list(zip(RELEASES, RECORDED, strict=True)))
def test_nodes_are_protected_as_by_kafka(secured: ZooKeeperServer, release: str, version: str) -> None:
    assert version.startswith(release)
    at = f"/acls-{release}"
    login: dict[str, Any] = {"java_security_auth_login_config": secured.jaas}
    with registered(secured, at, release, **SETTINGS, **login) as broker, Wire(broker.bootstrap_servers) as wire:
        r = m.MetadataRequest
        wire.ask("Metadata", 0, r(topics=[r.MetadataRequestTopic(name="t")]))
        until(lambda: secured.client.exists(f"{at}/brokers/topics/t/partitions/0/state"), "t is there", within=20)
        found = {path: may(secured, path) for path in paths_below(secured, at)}
        with pytest.raises(NoAuthError):
            secured.client.delete(f"{at}/brokers/topics/t", recursive=True)
    recorded = RECORDED[version].items()
    expected = {path.replace("/chroot", at).replace("/ids/1", "/ids/7"): acls for path, acls in recorded}
    assert {path: found.get(path) for path in expected} == expected
    protected = {tuple(map(tuple, acls)) for path, acls in found.items() if path not in expected}
    assert protected <= {(("sasl", "kafka", 31), ("world", "anyone", 1))}


def test_a_login_that_is_wrong_or_missing_ends_the_start(secured: ZooKeeperServer) -> None:
    with pytest.raises(BrokerFailed, match=r"zookeeper.set.acl is true, and no JAAS file"):
        registered(secured, "/none", "1.1", zookeeper_set_acl=True).start()
    other = secured.directory / "other.conf"
    other.write_text("Client { com.sun.security.auth.module.Krb5LoginModule required; };")
    with pytest.raises(BrokerFailed, match=r"section Client needs .*DigestLoginModule with username and password"):
        registered(secured, "/none", "1.1", java_security_auth_login_config=other).start()
    other.write_text(secured.jaas.read_text().replace('password="secret"', 'password="guess"'))
    with pytest.raises(BrokerFailed, match=r"exit code 7"):
        registered(secured, "/none", "1.1", java_security_auth_login_config=other).start()
    assert secured.client.exists("/none") is None
