"""A broker that logs in to a real ZooKeeper, or connects with TLS, and keeps what it makes there from others
(`zookeeper.set.acl`); and the commands that read such a ZooKeeper.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from kazoo.exceptions import NoAuthError
from kazoo.security import ACL, Id, Permissions
from ottla.protocol import messages as m

from ottla.adopt_command import adopt
from ottla.offset_commands import offsets
from ottla.testing import Broker, BrokerFailed

from ..oracle.zookeeper import ZooKeeperServer
from ..support.poll import until
from ..support.sources import ROOT
from ..support.tls import PASSWORD, make_certificates
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


# TLS


@pytest.fixture(scope="module")
def with_tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """A ZooKeeper that takes TLS from who has a certificate, and what is in the clear from the client of the tests."""
    folder = make_certificates(tmp_path_factory.mktemp("certs"))
    with ZooKeeperServer(certificates=folder / "good") as server:
        yield server


def tls(server: ZooKeeperServer, kind: str, client: str = "client") -> dict[str, Any]:
    """Kafka's keys, with stores of a type that their names tell."""
    assert server.certificates is not None
    folder = server.certificates
    trust = folder / ("ca.crt" if kind == "pem" else f"truststore.{kind}")
    given = {
        "client.enable": True,
        "keystore.location": folder / f"{client}.{kind}",
        "truststore.location": trust,
        **({"truststore.type": "PEM"} if kind == "pem" else {"truststore.password": PASSWORD}),
        **({} if kind == "pem" else {"keystore.password": PASSWORD}),
    }
    return {f"zookeeper.ssl.{key}": value for key, value in given.items()}


@pytest.mark.parametrize("kind", ["jks", "p12", "pem"])
def test_a_broker_with_a_certificate_owns_what_it_makes(with_tls: ZooKeeperServer, kind: str) -> None:
    at = f"/tls-{kind}"
    broker = registered(with_tls, at, "2.8", **tls(with_tls, kind), zookeeper_set_acl=True)
    broker.settings["zookeeper.connect"] = f"{with_tls.secure_address}{at}"
    with broker, Wire(broker.bootstrap_servers) as wire:
        assert may(with_tls, f"{at}/brokers/topics") == [["world", "anyone", 1], ["x509", "CN=client", 31]]
        r = m.MetadataRequest
        asked = r(topics=[r.MetadataRequestTopic(name="t")])
        until(lambda: not wire.ask("Metadata", 1, asked).topics[0].error_code, "t is made")
        until(lambda: with_tls.client.exists(f"{at}/brokers/topics/t/partitions/0/state"), "and shown", within=20)


def test_what_is_wrong_with_tls_ends_the_start(with_tls: ZooKeeperServer) -> None:
    at = f"{with_tls.secure_address}/none"
    absent = registered(with_tls, "", "2.8", **tls(with_tls, "p12", "nobody"))
    with pytest.raises(BrokerFailed, match=r"zookeeper\.ssl\.keystore\.location: .*nobody\.p12"):
        absent.start()
    unnamed = registered(with_tls, "", "2.8", **tls(with_tls, "p12"), zookeeper_connection_timeout_ms=1500)
    unnamed.settings["zookeeper.connect"] = at.replace("localhost", "127.0.0.3")
    with pytest.raises(BrokerFailed, match=r"exit code 7"):
        unnamed.start()
    assert with_tls.client.exists("/none") is None
    unnamed.settings["zookeeper.ssl.endpoint.identification.algorithm"] = ""
    with unnamed:
        assert with_tls.client.exists("/none/brokers/ids/7"), "its name is not looked at"


# the commands


def keep_from_others(server: ZooKeeperServer, at: str, user: Id) -> None:
    """Makes a topic of one partition, and an offset of a group in it, which one user alone may read."""
    nodes = {
        f"{at}/brokers/topics/t": {"version": 1, "partitions": {"0": [1]}},
        f"{at}/brokers/topics/t/partitions/0/state": {
            "controller_epoch": 1,
            "leader": 1,
            "version": 1,
            "leader_epoch": 0,
            "isr": [1],
        },
        f"{at}/consumers/g/offsets/t/0": 3,
    }
    for path, value in nodes.items():
        server.client.create(path, json.dumps(value).encode(), makepath=True)
    for path in nodes:
        server.client.set_acls(path, [ACL(Permissions.ALL, user)])


def commands_read(place: str, at: str, directory: Path, *more: object) -> list[tuple[int, str]]:
    """Returns the exit codes and last words of an adoption and of an import."""
    (directory / "t-0").mkdir(exist_ok=True)
    (directory / "t-0" / f"{0:020}.log").touch()
    (directory / "meta.properties").write_text("version=0\nbroker.id=1\n")
    given = ["--zookeeper", f"{place}{at}", *map(str, more)]
    with Broker({"offsets.topic.num.partitions": 1}, lab=False) as broker, Wire(broker.bootstrap_servers) as wire:
        r = m.CreateTopicsRequest
        wire.ask("CreateTopics", 2, r(topics=[r.CreatableTopic(name="t", num_partitions=1, replication_factor=1)]))
        found = [
            CliRunner().invoke(adopt, [str(directory), *given]),
            CliRunner().invoke(offsets, ["import", "-b", broker.bootstrap_servers, *given, "g"]),
        ]
    return [(one.exit_code, one.output) for one in found]


def assert_read(found: list[tuple[int, str]]) -> None:
    (adopted, plan), (carried, words) = found
    assert (adopted, "  write 1 committed offsets that ZooKeeper has" in plan.splitlines()) == (0, True), plan
    assert (carried, words.splitlines()[-1]) == (0, "1 of 1 offsets set"), words


def test_commands_log_in(secured: ZooKeeperServer, tmp_path: Path) -> None:
    keep_from_others(secured, "/tools", Id("sasl", "kafka"))
    (adopted, why), (carried, words) = commands_read(secured.address, "/tools", tmp_path)
    assert (adopted, "what the brokers keep for themselves needs their login" in why) == (5, True), why
    assert (carried, "NoAuthError" in words) == (1, True), words
    login = f"java.security.auth.login.config={secured.jaas}"
    assert_read(commands_read(secured.address, "/tools", tmp_path, "-o", login))


def test_commands_connect_with_tls(with_tls: ZooKeeperServer, tmp_path: Path) -> None:
    """As the brokers do, by their file."""
    keep_from_others(with_tls, "/tools", Id("x509", "CN=client"))
    file = tmp_path / "server.properties"
    others = {"broker.id": 1, "log.segment.bytes": 14, "zookeeper.connect": "elsewhere:1", "zookeeper.set.acl": True}
    file.write_text("".join(f"{key}={value}\n" for key, value in {**others, **tls(with_tls, "p12")}.items()))
    assert [code for code, _ in commands_read(with_tls.address, "/tools", tmp_path)] == [5, 1]
    assert_read(commands_read(with_tls.secure_address, "/tools", tmp_path, "-c", file))
