"""Delegation tokens in a ZooKeeper in memory: brokers of Kafka write them there, and so does this one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ottla.coordinator.security.tokens import TokenHmacs

from ..support.kazoo_double import KazooDouble
from ..support.sources import ROOT
from ..support.token_world import SETTINGS, create, expire, peer_of, renew
from ..support.world import World
from ..support.zookeeper_world import ROUNDS_MS, put, restarted, started

RECORDED: dict[str, Any] = json.loads((ROOT / "tests/oracle/recorded/zookeeper_entities.json").read_text())
TOKENS, CHANGES = "/delegation_token/tokens", "/delegation_token/token_changes"


def world_of(client: KazooDouble, release: str = "3.9", **settings: str) -> World:
    return with_alice(started(client, None, release, **{**SETTINGS, **settings}))


def with_alice(w: World) -> World:
    w.peer = peer_of("alice")
    return w


def by_kafka(version: str) -> tuple[str, dict[str, Any]]:
    """Returns the id and the value of the token that a broker of Kafka wrote."""
    nodes = RECORDED[version]["nodes"]
    (path,) = (one for one in nodes if one.startswith(f"{TOKENS}/"))
    return path.rpartition("/")[2], json.loads(nodes[path])


def there(client: KazooDouble) -> dict[str, Any]:
    head = f"{TOKENS}/"
    return {path.removeprefix(head): json.loads(node.value) for path, node in client.nodes.items() if head in path}


def changes(client: KazooDouble) -> list[str]:
    return [node.value.decode() for path, node in client.nodes.items() if path.startswith(f"{CHANGES}/")]


def announce(client: KazooDouble, token_id: str) -> None:
    client.create(f"{CHANGES}/token_change_", token_id.encode(), sequence=True)


@pytest.mark.parametrize(("release", "version"), [("1.1", "1.1.1"), ("2.8", "2.8.2"), ("3.9", "3.9.1")])
def test_the_token_of_a_broker_of_kafka_is_taken_over(client: KazooDouble, release: str, version: str) -> None:
    """Its HMAC, which is its password, is the one that Kafka's tool has shown."""
    token_id, token = by_kafka(version)
    put(client, f"{TOKENS}/{token_id}", token)
    w = world_of(client, release)
    found = w.broker.image.tokens[token_id]
    assert (found.owner, found.requester, found.renewers) == ("User:alice", "User:alice", ["User:bob"])
    assert (found.issue_timestamp, found.expiration_timestamp, found.max_timestamp) == tuple(
        token[f"{one}Timestamp"] for one in ("issue", "expiry", "max")
    )
    assert TokenHmacs("master-key").password(token_id) in RECORDED[version]["tokens"][-1]
    fresh = KazooDouble()
    started(fresh, w.files, release, **SETTINGS)
    assert there(fresh) == {token_id: token}


def test_tokens_that_clients_make_are_shown(client: KazooDouble) -> None:
    w = world_of(client)
    token = create(w, -1, "bob")
    w.pass_ms(ROUNDS_MS)
    assert there(client) == {
        token.token_id: {
            "version": 3,
            "tokenId": token.token_id,
            "owner": "User%3Aalice",
            "tokenRequester": "User%3Aalice",
            "renewers": ["User%3Abob"],
            "issueTimestamp": token.issue_timestamp_ms,
            "expiryTimestamp": token.expiry_timestamp_ms,
            "maxTimestamp": token.max_timestamp_ms,
        }
    }
    renewed = renew(w, token, 1000)
    w.pass_ms(ROUNDS_MS)
    assert there(client)[token.token_id]["expiryTimestamp"] == renewed.expiry_timestamp_ms
    expire(w, token)
    w.pass_ms(ROUNDS_MS)
    assert there(client) == {}
    assert changes(client) == [token.token_id] * 3


def test_what_another_broker_does_with_a_token_takes_effect(client: KazooDouble) -> None:
    w = world_of(client)
    token_id, token = by_kafka("3.9.1")
    token["expiryTimestamp"] = token["maxTimestamp"]
    put(client, f"{TOKENS}/{token_id}", token)
    announce(client, token_id)
    w.pass_ms(ROUNDS_MS)
    assert w.broker.image.tokens[token_id].expiration_timestamp == token["maxTimestamp"]
    client.delete(f"{TOKENS}/{token_id}")
    announce(client, token_id)
    w.pass_ms(ROUNDS_MS)
    assert w.broker.image.tokens == {}


def test_what_changes_during_an_outage_is_there_afterwards(client: KazooDouble) -> None:
    w = world_of(client)
    gone, kept = create(w), create(w)
    w.pass_ms(ROUNDS_MS)
    client.lose()
    expire(w, gone)
    made = create(w)
    with client.tool():
        client.delete(f"{TOKENS}/{kept.token_id}")
    again = restarted(w, client, "3.9", **SETTINGS)
    again.pass_ms(ROUNDS_MS)
    assert list(again.broker.image.tokens) == list(there(client)) == [made.token_id]


def test_tokens_that_cannot_be_had_stay_without_effect(client: KazooDouble) -> None:
    token_id, token = by_kafka("3.9.1")
    wrong: dict[str, dict[str, Any]] = {
        "other": token,
        "early": {**token, "tokenId": "early", "issueTimestamp": -1},
        "late": {**token, "tokenId": "late", "maxTimestamp": 1 << 63},
        "unnamed": {**token, "tokenId": "unnamed", "owner": "alice"},
        "many": {**token, "tokenId": "many", "renewers": ["User%3Abob"] * 1000},
        "malformed": {"tokenId": "malformed"},
    }
    for name, value in {**wrong, token_id: token}.items():
        put(client, f"{TOKENS}/{name}", value)
    w = world_of(client)
    assert list(w.broker.image.tokens) == [token_id]
    assert there(client) == {**wrong, token_id: token}


def test_a_broker_without_a_secret_key_leaves_tokens_alone(client: KazooDouble) -> None:
    token_id, token = by_kafka("3.9.1")
    put(client, f"{TOKENS}/{token_id}", token)
    w = started(client, release="2.8")
    assert w.broker.image.tokens == {}
    assert there(client) == {token_id: token}
