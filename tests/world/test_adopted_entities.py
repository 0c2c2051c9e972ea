"""What ZooKeeper knew beside topics is there after `ottla adopt --zookeeper`: quotas, credentials, rights, tokens,
configurations of brokers, and offsets that consumers committed there.

The tools of the releases made it, and the brokers of some said what it is (`tests.oracle.record_entities`).
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ottla.broker.config.checks import STANDARD_AUTHORIZER
from ottla.coordinator.security import scram
from ottla.protocol import messages as m

from ottla.adoption.catalog import from_described, from_zookeeper
from ottla.adoption.plan import Given
from ottla.adoption.report import ReportView, report
from ottla.adoption.work import Order, prepared

from ..support.entities import acls_of, credentials_of, quotas_of
from ..support.old_directories import DumpedNodes, OldDirectories, committed, in_memory
from ..support.poll import until
from ..support.sources import ROOT
from ..support.token_world import SETTINGS, peer_of
from ..support.world import World

pytestmark = pytest.mark.long

RECORDED: dict[str, Any] = json.loads((ROOT / "tests/oracle/recorded/zookeeper_entities.json").read_text())
LATEST = RECORDED["3.9.1"]
ADMINISTERED = ("0.10.2.2", "1.1.1", "2.8.2", "3.9.1")
LATER_MS = 1_900_000_000_000  # years after the directories were written
MASTER_KEY = {"delegation.token.secret.key": "master-key"}
AUTHORIZER = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
_LITERAL = [row for row in LATEST["acls"] if row[0] < 5 and row[2] == 3]
_APP = "User:CN=app,OU=a b,O=ü"  # a producer, which before 2.0 had to be allowed to create any topic
RIGHTS_OF_0_10_2 = sorted(
    [[4, "kafka-cluster", 3, _APP, "*", 5, 3], *(row for row in _LITERAL if row[3] != _APP or row[5] != 5)]
)
ON_PLACE = ("of its own", "in place")


class Case:
    """The directories of a release with what was recorded of its ZooKeeper, and other nodes."""

    def __init__(self, version: str, path: Path, place: str = "in place", **changes: str) -> None:
        self.old = OldDirectories(version, path / "old")
        self.to = None if place == "in place" else path / "data"
        nodes = {**self.old.zookeeper, **{at: value.encode() for at, value in RECORDED[version]["nodes"].items()}}
        self.nodes = {**nodes, **{at: value.encode() for at, value in changes.items()}}
        self.report: ReportView

    def world(
        self, settings: Mapping[str, str] | None = None, *, lets_expire: bool = False, secrets: tuple[str, ...] = ()
    ) -> World:
        given = Given(from_zookeeper(DumpedNodes(self.nodes)), lets_expire, "new", secrets)
        data = self.old.data("clean")
        with prepared(Order((str(data),), None if self.to is None else str(self.to), given), LATER_MS) as adoption:
            self.report = report(adoption, "ZooKeeper").view
            adoption.carry_out(sync=lambda: None)
        return World(in_memory(self.to or data), 0, LATER_MS, **(settings or {}))


# quotas, credentials, rights, tokens


@pytest.mark.parametrize("version", ADMINISTERED)
def test_quotas_credentials_and_rights_are_what_kafka_says(version: str, tmp_path: Path) -> None:
    """Brokers of 2.8 and 3.9 told the same of what their tools made; those before could not, but had no limits of
    addresses (2.7), patterns (2.0), tokens (1.1), transactional ids and percentages of requests (0.11).
    """
    said = RECORDED[version]
    world = Case(version, tmp_path).world(AUTHORIZER)
    quotas = [row for row in LATEST["quotas"] if row[0][0][0] != "ip" or version >= "2.7"]
    quotas = [row for row in quotas if version >= "0.11" or row[1][-1][0] != "request_percentage"]
    assert quotas_of(world) == said.get("quotas", quotas) == quotas
    assert credentials_of(world) == said.get("credentials", LATEST["credentials"]) == LATEST["credentials"]
    assert acls_of(world, 1) == said.get("acls", RIGHTS_OF_0_10_2)
    for kept in world.broker.image.credentials.values():
        digest = scram.BY_NUMBER[kept.mechanism].digest
        salted = scram.salted_password(digest, "alice-secret", kept.salt, kept.iterations)
        made = scram.credential_of(digest, salted, kept.salt, kept.iterations)
        assert (made.stored_key, made.server_key) == (kept.stored_key, kept.server_key)


@pytest.mark.parametrize("version", ADMINISTERED[1:])
def test_tokens_are_valid_with_the_same_key(version: str, tmp_path: Path) -> None:
    world = Case(version, tmp_path).world({**SETTINGS, **MASTER_KEY})
    world.peer = peer_of("alice")
    (token,) = world.ask("DescribeDelegationToken", 3, m.DescribeDelegationTokenRequest(owners=None)).tokens
    line = next(one for one in RECORDED[version]["tokens"] if token.token_id in one)
    assert b64encode(token.hmac).decode() in line.split()
    assert (token.principal_name, token.token_requester_principal_name) == ("alice", "alice")
    assert [one.principal_name for one in token.renewers] == ["bob"]


def test_what_cannot_be_read_or_is_not_allowed_is_lost_and_said(tmp_path: Path) -> None:
    def entry(operation: str) -> dict[str, str]:
        return {"principal": "User:a", "permissionType": "Deny", "operation": operation, "host": "*"}

    case = Case(
        "3.9.1",
        tmp_path,
        **{
            "/config/clients/low": '{"version":1,"config":{"producer_byte_rate":"0","request_percentage":"many"}}',
            "/config/clients/torn": "{",
            "/config/users/eve": '{"version":1,"config":{"SCRAM-SHA-256":"salt=MTI="}}',
            "/kafka-acl/Topic/odd": json.dumps({"version": 1, "acls": [entry("Read"), entry("Guess")]}),
            "/kafka-acl/Group/torn": "[]",
            "/delegation_token/tokens/torn": "{}",
            "/consumers/g/offsets/plain/0": "many",
        },
    )
    world = case.world(AUTHORIZER)
    assert case.report["lost"] == [
        "/config/clients/low: producer_byte_rate: Quota producer_byte_rate must be greater than 0",
        "/config/clients/low: request_percentage: the value has not the form that Kafka gives it",
        "/config/clients/torn: the value is not JSON",
        "/config/users/eve: SCRAM-SHA-256: the value has not the form that Kafka gives it",
        "/kafka-acl/Group/torn: the value is not a JSON object",
        "/kafka-acl/Topic/odd: Deny Guess for User:a from *: Kafka 4.4 does not know Guess",
        "/delegation_token/tokens/torn: the value is not a delegation token",
        "/consumers/g/offsets/plain/0: the value is not an offset",
    ]
    assert [row for row in acls_of(world, 1) if row[1] == "odd"] == [[2, "odd", 3, "User:a", "*", 3, 2]]


# brokers and topics


@pytest.mark.parametrize("version", ADMINISTERED[1:])
def test_configurations_of_brokers_are_carried_over_but_for_encrypted_passwords(version: str, tmp_path: Path) -> None:
    five = '{"version":1,"config":{"log.cleaner.threads":"3"}}'
    case = Case(version, tmp_path, **{"/config/brokers/5": five})
    configs = case.world().broker.image.configs
    assert {name: values for (kind, name), values in configs.items() if kind == 4} == {
        "1": {"log.cleaner.threads": "2"},
        "": {"log.retention.ms": "900000001"},
    }
    changed = case.report["changed"]
    assert "broker 5: log.cleaner.threads: there is no such broker any more" in changed
    why = "it is encrypted with password.encoder.secret; name the broker's server.properties with -c, or set it again"
    encrypted = [one for one in changed if one.endswith(why)]
    known = [] if version == "1.1.1" else ["listener.name.other.ssl.key.password"]
    assert [one.split(": ")[1] for one in encrypted] == known, "tools before 2.0 set none without a broker"


PASSWORD = "listener.name.other.ssl.key.password"


@pytest.mark.parametrize("secrets", [("encoder",), ("another", "encoder")])
@pytest.mark.parametrize("version", ["2.8.2", "3.9.1"])
def test_passwords_of_brokers_are_opened_with_the_secret(
    version: str, secrets: tuple[str, ...], tmp_path: Path
) -> None:
    """The tools of these Kafkas encrypted `hidden`."""
    world = Case(version, tmp_path).world(secrets=secrets)
    assert world.broker.image.config_of(4, "1") == {"log.cleaner.threads": "2", PASSWORD: "hidden"}


def test_a_password_that_the_secret_does_not_open_is_said(tmp_path: Path) -> None:
    case = Case("3.9.1", tmp_path)
    assert case.world(secrets=("another",)).broker.image.config_of(4, "1") == {"log.cleaner.threads": "2"}
    why = "it is encrypted with another password.encoder.secret; set it again"
    assert f"broker 1: {PASSWORD}: {why}" in case.report["changed"]


@pytest.mark.parametrize("place", ON_PLACE)
def test_a_topic_that_is_marked_for_deletion_is_left_out(place: str, tmp_path: Path) -> None:
    case = Case("2.8.2", tmp_path, place)
    world = case.world()
    assert "defaults" not in world.broker.image.topics
    becomes = "it becomes a stray directory" if place == "in place" else "it is not copied"
    assert f"defaults-0: its topic is marked for deletion; {becomes}" in case.report["left_out"]
    left = [one.name for one in case.old.data("clean").iterdir() if one.name.startswith("defaults")]
    assert left == ["defaults-0"], "nothing is deleted"


def test_the_mark_is_also_known_from_what_a_tool_described() -> None:
    """That of 0.10.2 says nothing of it."""
    found = from_described(RECORDED["1.1.1"]["described"])
    assert (found.topics, found.doomed) == ({}, ["defaults"])


# offsets


def offsets(world: World, group: str) -> dict[str, list[int]]:
    """What a group has committed for both partitions of `plain`."""
    r = m.OffsetFetchRequest
    named = [r.OffsetFetchRequestTopics(name="plain", partition_indexes=[0, 1])]

    def asked() -> Any:
        asked = r(groups=[r.OffsetFetchRequestGroup(group_id=group, topics=named)])
        reply = world.ask("OffsetFetch", 8, asked).groups[0]
        return None if reply.error_code else reply

    found = until(asked, f"{group} is loaded")
    return {topic.name: [one.committed_offset for one in topic.partitions] for topic in found.topics}


@pytest.mark.parametrize("place", ON_PLACE)
@pytest.mark.parametrize("version", ["0.8.2.2", "0.10.2.2", "1.1.1"])
def test_of_offsets_in_zookeeper_and_in_kafka_the_larger_one_counts(version: str, place: str, tmp_path: Path) -> None:
    case = Case(version, tmp_path, place)
    world = case.world()
    assert offsets(world, "zookeeper") == {"plain": [8, 2]}, "only ZooKeeper had them"
    assert offsets(world, "simple") == {"plain": [8, 2]}, "Kafka had 5 of partition 0"
    assert committed(world, "simple", ["packed"]) == {"packed-0": 7}, "only Kafka had it"
    known = case.old.offsets("clean").get("classic", {"plain-0": -1})["plain-0"]
    there = int(RECORDED[version]["nodes"].get("/consumers/classic/offsets/plain/0", -1))
    assert there < known or known == -1, "the recording has less there"
    assert offsets(world, "classic")["plain"][0] == max(known, there)
    assert "simple: offset 8 of plain-0, from ZooKeeper, instead of 5" in case.report["changed"]


@pytest.mark.parametrize("place", ON_PLACE)
def test_offsets_in_zookeeper_are_enough(place: str, tmp_path: Path) -> None:
    """A cluster of 0.8 whose consumers all commit there has no `__consumer_offsets`."""
    case = Case("0.8.2.2", tmp_path, place)
    case.nodes = {at: value for at, value in case.nodes.items() if "__consumer_offsets" not in at}
    for one in case.old.data("clean").glob("__consumer_offsets-*"):
        for file in one.iterdir():
            file.unlink()
        one.rmdir()
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        path = case.old.data("clean") / name
        lines = [one for one in path.read_text().splitlines()[2:] if not one.startswith("__consumer_offsets")]
        path.write_text("\n".join(["0", str(len(lines)), *lines, ""]))
    case.nodes["/consumers/zookeeper/offsets/gone/0"] = b"3"
    world = case.world(lets_expire=True)
    assert offsets(world, "zookeeper") == offsets(world, "simple") == {"plain": [8, 2]}
    assert (case.report["lost"], case.report["found"]["groups"]) == ([], 3)
    assert "1 committed offsets in ZooKeeper of partitions that there are not" in case.report["left_out"]
