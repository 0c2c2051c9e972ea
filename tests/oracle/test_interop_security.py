"""What a broker changed and deleted of the other's credentials, entries, quotas and tokens is changed and deleted for
the other, too, also where the metadata is read from a snapshot.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from ottla.coordinator.security.acls import Acl, Operation, PatternType, Permission, ResourceType
from ottla.protocol import messages as m

from ottla.testing import Broker

from ..support.acls import creations
from ..support.poll import until
from ..support.scram import ScramClient, log_in
from ..support.secured import SETTINGS, SecuredKafka
from ..support.wire import Wire

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
SAME: dict[str, object] = {
    **SETTINGS,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin;User:ANONYMOUS",
    "connection.failed.authentication.delay.ms": 0,
    "delegation.token.secret.key": "one key",
    "metadata.log.max.record.bytes.between.snapshots": 200,
}
MECHANISM, SHA_256 = "SCRAM-SHA-256", 1
FIRST, SECOND, THIRD = (
    Acl(ResourceType.TOPIC, name, PatternType.LITERAL, "User:erik", "*", Operation.READ, Permission.ALLOW)
    for name in ("first", "second", "third")
)
Described = tuple[Any, ...]


class Admin:
    """The administrator's connection."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.wire = Wire(servers)
        self._ask("SaslHandshake", 1, m.SaslHandshakeRequest(mechanism="PLAIN"))
        self._ask("SaslAuthenticate", 2, m.SaslAuthenticateRequest(auth_bytes=b"\0admin\0admin-secret"))

    def __enter__(self) -> Admin:
        return self

    def __exit__(self, *_: object) -> None:
        self.wire.close()

    def _ask(self, name: str, version: int, message: Any) -> Any:
        reply = self.wire.ask(name, version, message)
        assert not getattr(reply, "error_code", 0), reply
        return reply

    def put_password(self, user: str, password: str | None) -> None:
        """Sets the password of a user; None deletes it."""
        r = m.AlterUserScramCredentialsRequest
        if password is None:
            request = r(deletions=[r.ScramCredentialDeletion(name=user, mechanism=SHA_256)])
        else:
            salted = hashlib.pbkdf2_hmac("sha256", password.encode(), b"salt", 4096)
            up = r.ScramCredentialUpsertion(
                name=user, mechanism=SHA_256, iterations=4096, salt=b"salt", salted_password=salted
            )
            request = r(upsertions=[up])
        assert [one.error_code for one in self._ask("AlterUserScramCredentials", 0, request).results] == [0]

    def put_limit(self, user: str, rate: float | None) -> None:
        a = m.AlterClientQuotasRequest
        op = a.OpData(key="producer_byte_rate", value=rate or 0.0, remove=rate is None)
        entry = a.EntryData(entity=[a.EntityData(entity_type="user", entity_name=user)], ops=[op])
        assert [one.error_code for one in self._ask("AlterClientQuotas", 1, a(entries=[entry])).entries] == [0]

    def add(self, *acls: Acl) -> None:
        assert {one.error_code for one in self._ask("CreateAcls", 3, creations(acls)).results} == {0}

    def remove(self, acl: Acl) -> None:
        f = m.DeleteAclsRequest
        wanted = f.DeleteAclsFilter(
            resource_type_filter=acl.resource_type, resource_name_filter=acl.name, pattern_type_filter=1,
            principal_filter=None, host_filter=None, operation=1, permission_type=1,
        )  # fmt: skip
        assert len(self._ask("DeleteAcls", 3, f(filters=[wanted])).filter_results[0].matching_acls) == 1

    def token(self) -> Any:
        return self._ask("CreateDelegationToken", 3, m.CreateDelegationTokenRequest(max_lifetime_ms=3_600_000))

    def renew(self, token: Any, period_ms: int) -> None:
        self._ask("RenewDelegationToken", 2, m.RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=period_ms))

    def expire(self, token: Any) -> None:
        self._ask("ExpireDelegationToken", 2, m.ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1))

    def described(self) -> Described:
        """Credentials, entries, limits and tokens, each with what can change of it."""
        users = self._ask("DescribeUserScramCredentials", 0, m.DescribeUserScramCredentialsRequest(users=None)).results
        everything = m.DescribeAclsRequest(
            resource_type_filter=1, resource_name_filter=None, pattern_type_filter=1, principal_filter=None,
            host_filter=None, operation=1, permission_type=1,
        )  # fmt: skip
        acls = self._ask("DescribeAcls", 3, everything).resources
        limits = self._ask("DescribeClientQuotas", 1, m.DescribeClientQuotasRequest(components=[], strict=False))
        tokens = self._ask("DescribeDelegationToken", 3, m.DescribeDelegationTokenRequest(owners=None)).tokens
        return (
            sorted((one.user, info.mechanism) for one in users for info in one.credential_infos),
            sorted(one.resource_name for one in acls),
            sorted((entry.entity[0].entity_name, entry.values[0].value) for entry in limits.entries or ()),
            sorted((one.token_id, one.expiry_timestamp) for one in tokens),
        )

    def lets_in(self, name: str, password: str, extensions: str = "") -> bool:
        client = ScramClient(MECHANISM, name, password, extensions=extensions)
        with Wire(self.servers) as wire:
            return log_in(wire, client, MECHANISM)

    def lets_in_with(self, token: Any) -> bool:
        return self.lets_in(token.token_id, b64encode(token.hmac).decode(), ",tokenauth=true")


def began(admin: Admin) -> list[Any]:
    """Makes two of each kind; returns the tokens."""
    for user in ("erik", "fay"):
        admin.put_password(user, "old")
        admin.put_limit(user, 1000.0)
    admin.add(FIRST, SECOND)
    return [admin.token(), admin.token()]


def changed(admin: Admin, tokens: list[Any]) -> None:
    """Changes one of each kind, deletes the other one, and adds one."""
    admin.put_password("erik", "new")
    admin.put_password("fay", None)
    admin.put_limit("erik", 2000.0)
    admin.put_limit("fay", None)
    admin.remove(FIRST)
    admin.add(THIRD)
    admin.renew(tokens[0], 60_000)
    admin.expire(tokens[1])
    until(lambda: not admin.lets_in_with(tokens[1]), "the token is gone")


def check_changed(admin: Admin, tokens: list[Any]) -> None:
    until(lambda: admin.lets_in("erik", "new"), "the new password lets in")
    assert [admin.lets_in("erik", "old"), admin.lets_in("fay", "old")] == [False, False]
    until(lambda: admin.lets_in_with(tokens[0]), "the token that was renewed lets in")
    assert not admin.lets_in_with(tokens[1])
    wanted = ([("erik", SHA_256)], ["second", "third"], [("erik", 2000.0)])
    until(lambda: admin.described()[:3] == wanted, "the changes are described")
    left = admin.described()[3]
    assert [token_id for token_id, _ in left] == [tokens[0].token_id]


def emptied(admin: Admin, token: Any) -> None:
    admin.put_password("erik", None)
    admin.put_limit("erik", None)
    admin.remove(SECOND)
    admin.remove(THIRD)
    admin.expire(token)


def check_snapshot(directory: Path) -> None:
    made = (directory / "data/__cluster_metadata-0").glob("*.checkpoint")
    assert [one for one in made if not one.name.startswith("0" * 20)], "there is no snapshot of the metadata"


def as_kafkas(directory: Path) -> SecuredKafka:
    return SecuredKafka(SAME, directory, formatted=True)


@pytest.mark.parametrize("first", ["ottla", "kafka"])
def test_changes_and_deletions_go_both_ways(first: str, tmp_path: Path) -> None:
    """The first broker makes all of it, the second changes it, the first deletes it, and the second has nothing."""

    def brokers(number: int) -> Any:
        if (first == "ottla") is (number % 2 == 0):
            return Broker({"node.id": 1, **SAME}, directory=tmp_path)
        return as_kafkas(tmp_path) if number else SecuredKafka(SAME, tmp_path)

    def admin_of(broker: Any) -> Admin:
        return Admin(broker.sasl_servers if isinstance(broker, SecuredKafka) else broker.bootstrap_servers)

    with brokers(0) as broker, admin_of(broker) as admin:
        tokens = began(admin)
        until(lambda: [len(of_a_kind) for of_a_kind in admin.described()] == [2] * 4, "all of it is there")
        made = admin.described()
    check_snapshot(tmp_path)
    with brokers(1) as broker, admin_of(broker) as admin:
        until(lambda: admin.described() == made, "the other broker has all of it")
        changed(admin, tokens)
        check_changed(admin, tokens)
        made = admin.described()
    with brokers(2) as broker, admin_of(broker) as admin:
        until(lambda: admin.described() == made, "the first broker has the changes")
        check_changed(admin, tokens)
        emptied(admin, tokens[0])
        until(lambda: not any(map(len, admin.described())), "nothing is left")
    with brokers(3) as broker, admin_of(broker) as admin:
        assert admin.described() == ([], [], [], [])
        assert not admin.lets_in("erik", "new")
