"""The declarations of what a principal must be allowed, beside the handlers of the APIs."""

from __future__ import annotations

import pytest
from ottla.broker.apis import apis
from ottla.broker.config import config, sources
from ottla.broker.net.api import Api
from ottla.broker.peer import Peer
from ottla.broker.security.authorization import CLUSTER, Refusal, rows
from ottla.broker.security.authorizing import authorizer_of
from ottla.coordinator.security.acls import SUPPORTED, Operation, ResourceType
from ottla.protocol import messages

WITHOUT_CHECKS = (
    "ApiVersions",
    "ExpireDelegationToken",
    "GetTelemetrySubscriptions",
    "PushTelemetry",
    "RenewDelegationToken",
    "SaslAuthenticate",
    "SaslHandshake",
)
STANDARD = "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def test_which_apis_need_no_right() -> None:
    assert sorted(api.name for api in apis().values() if not api.authorization) == list(WITHOUT_CHECKS)


@pytest.mark.parametrize("api", apis().values(), ids=[api.name for api in apis().values()])
def test_a_declaration_names_an_operation_of_its_resource_and_a_field(api: Api) -> None:
    request = getattr(messages, api.request)()
    for check in api.authorization:
        is_odd = (check.operation, check.resource_type) == (Operation.DELETE, ResourceType.CLUSTER)  # as in Kafka
        assert is_odd or check.operation in SUPPORTED[check.resource_type]
        assert (check.names is CLUSTER) == (check.resource_type is ResourceType.CLUSTER)
        if check.refusal is Refusal.REQUEST and check.names is not CLUSTER:
            assert isinstance(getattr(request, check.names), str), "dispatch reads the name from this field"


def test_the_rows_of_the_documentation() -> None:
    found = {row for api in apis().values() for row in rows(api.name, api.authorization)}
    assert ("Heartbeat", "READ", "GROUP", "group_id", "the request: GROUP_AUTHORIZATION_FAILED") in found
    assert ("Produce", "WRITE", "TOPIC", "topic_data.name", "the element: TOPIC_AUTHORIZATION_FAILED") in found
    assert ("ListGroups", "DESCRIBE", "GROUP", "groups.group_id", "nothing; it is left out of the reply") in found
    assert len(found) > len(apis())


def built(*arguments: str) -> config.Config:
    return sources.build(sources.from_arguments(list(arguments)))


def test_the_authorizer_of_a_configuration() -> None:
    assert authorizer_of(built()) is None
    plain = authorizer_of(built(STANDARD))
    assert plain is not None
    assert (plain.super_users, plain.allows_uncovered) == (frozenset(), False)
    open_ = authorizer_of(
        built(STANDARD, "super.users= User:a;;User:CN=b,O=c ", "allow.everyone.if.no.acl.found= TRUE")
    )
    assert open_ is not None
    assert (open_.super_users, open_.allows_uncovered) == (frozenset(("User:a", "User:CN=b,O=c")), True)
    assert not built("super.users=User:a").warnings
    with pytest.raises(config.ConfigError, match="expected a string in format principalType:principalName but got a"):
        built(STANDARD, "super.users=a")


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("127.0.0.1:9", "127.0.0.1"),
        ("::1:9", "0:0:0:0:0:0:0:1"),
        ("2001:db8::ff:0:5:9", "2001:db8:0:0:0:ff:0:5"),
        ("::ffff:10.0.0.1:9", "10.0.0.1"),
        ("fe80::1%eth0:9", "fe80:0:0:0:0:0:0:1%eth0"),
    ],
)
def test_hosts_are_written_as_java_writes_them(address: str, host: str) -> None:
    peer = Peer("PLAINTEXT", address)
    assert (peer.host_address, peer.host) == (host, f"/{host}")


def test_operations_have_the_codes_of_kafka() -> None:
    assert (Operation.READ, Operation.TWO_PHASE_COMMIT) == (3, 15)
