"""Writes down who may do what with the nodes that brokers of earlier releases make in ZooKeeper with
`zookeeper.set.acl`, in `recorded/zookeeper_acls.json`.

`python -m tests.oracle.record_zookeeper_acls`, by hand; it takes two minutes. The client of 2.0.1 does not log in on
a Java of today; its classes (kafka.zk.ZkData) have the rules of 2.8.
"""

from __future__ import annotations

import json
import time

from kazoo.client import KazooClient
from ottla.protocol import messages as m

from ..support.poll import until
from ..support.sources import ROOT
from ..support.wire import Wire
from .old_kafka import OldKafka
from .zookeeper import ZooKeeperServer

VERSIONS = ("0.9.0.1", "0.10.0.1", "0.10.2.2", "0.11.0.3", "1.0.2", "1.1.1", "2.8.2", "3.9.1")
USER = ("kafka", "secret")
SETTLE_SECONDS = 2.0  # in which the broker makes what it has not made yet


def authorizer(version: str) -> str:
    is_later = tuple(map(int, version.split("."))) >= (2, 4)
    return "kafka.security.authorizer.AclAuthorizer" if is_later else "kafka.security.auth.SimpleAclAuthorizer"


def may(client: KazooClient, path: str) -> dict[str, list[list[object]]]:
    """The entries of a node and of those below it, by path."""
    found = {path: sorted([one.id.scheme, one.id.id, one.perms] for one in client.get_acls(path)[0])}
    for child in sorted(client.get_children(path)):
        found |= may(client, f"{path}/{child}")
    return found


def record(version: str) -> dict[str, list[list[object]]]:
    settings: dict[str, object] = {
        "zookeeper.set.acl": "true",
        "zookeeper.connection.timeout.ms": 60_000,
        "authorizer.class.name": authorizer(version),
        "super.users": "User:ANONYMOUS",
        "delegation.token.master.key": "key",
    }
    with ZooKeeperServer(user=USER) as server:
        login = {"mechanism": "DIGEST-MD5", "username": USER[0], "password": USER[1]}
        client = KazooClient(server.address, sasl_options=login)
        client.start()
        jaas = (f"-Djava.security.auth.login.config={server.jaas}",)
        with OldKafka(version, settings, f"{server.address}/chroot", java_options=jaas) as kafka:
            r = m.MetadataRequest
            asked = r(topics=[r.MetadataRequestTopic(name="t")])
            with Wire(kafka.bootstrap_servers) as wire:
                until(lambda: not wire.ask("Metadata", 0, asked).topics[0].error_code, "t is there", every=0.1)
            time.sleep(SETTLE_SECONDS)
            found = may(client, "/chroot")
        client.stop()
        client.close()
    return found


def main() -> None:
    found = {}
    for version in VERSIONS:
        found[version] = record(version)
        print(version, len(found[version]), flush=True)
    (ROOT / "tests/oracle/recorded/zookeeper_acls.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
