"""Every route's example, sent to a real broker in the order of declaration: each is answered, and each reply is what
the OpenAPI document says, without a key that the document does not have.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlencode

import pytest
from jsonschema import Draft202012Validator
from ottla.broker.lab.routes import Route, every_route
from ottla.broker.lab.shapes import example_values
from ottla.protocol import messages as m

from ottla.testing import Broker

from ..support.ask import create, produce
from ..support.poll import until
from ..support.share_session import ShareSession
from ..support.telemetry import CLIENT
from ..support.wire import Wire

TOPIC = "orders"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker, Wire(broker.bootstrap_servers) as wire:
        topic_id = create(wire, TOPIC, 2)
        for partition in range(2):
            produce(wire, TOPIC, b"first", b"second", partition=partition)
        wire.ask("FindCoordinator", 4, m.FindCoordinatorRequest(coordinator_keys=[TOPIC]))  # makes its topic
        assert ShareSession(wire, TOPIC, topic_id, 2).acquired() > 0
        yield broker


@pytest.fixture(scope="module")
def described(broker: Broker) -> Any:
    """The document, whose classes take no other keys than they name."""
    with urllib.request.urlopen(f"{broker.lab_url}/v1/openapi.json", timeout=60) as answer:
        found = json.load(answer)
    for schema in found["components"]["schemas"].values():
        schema.setdefault("additionalProperties", False)
    return found


def push_metrics(broker: Broker) -> None:
    with Wire(broker.bootstrap_servers) as wire:
        asked = m.GetTelemetrySubscriptionsRequest(client_instance_id=CLIENT)
        wanted = wire.ask("GetTelemetrySubscriptions", 0, asked).subscription_id
        empty = m.PushTelemetryRequest(client_instance_id=CLIENT, subscription_id=wanted, metrics=b"\x0a\x00")
        assert wire.ask("PushTelemetry", 0, empty).error_code == 0


def a_group(broker: Broker) -> None:
    """A consumer group `workers` with a member, and a committed offset."""
    with Wire(broker.bootstrap_servers) as wire:
        c, o = m.ConsumerGroupHeartbeatRequest, m.OffsetCommitRequest
        joins = c(group_id="workers", member_id="first", rebalance_timeout_ms=10_000, topic_partitions=[])
        joins.subscribed_topic_names = [TOPIC]
        for _ in range(100):  # the coordinator loads first
            found = wire.ask("ConsumerGroupHeartbeat", 1, joins)
            if found.error_code == 0:
                break
        commits = o(group_id="workers", member_id="first", generation_id_or_member_epoch=found.member_epoch)
        part = o.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        commits.topics = [o.OffsetCommitRequestTopic(name=TOPIC, partitions=[part])]
        assert wire.ask("OffsetCommit", 9, commits).topics[0].partitions[0].error_code == 0


def an_empty_share_group(broker: Broker) -> None:
    """A share group `jobs` with start offsets, whose member has left."""
    with Wire(broker.bootstrap_servers) as wire:
        h, d = m.ShareGroupHeartbeatRequest, m.DescribeShareGroupOffsetsRequest
        asked = d(groups=[d.DescribeShareGroupOffsetsRequestGroup(group_id="jobs", topics=None)])

        def has_offsets() -> bool:
            joins = h(group_id="jobs", member_id="first", member_epoch=0, subscribed_topic_names=[TOPIC])
            wire.ask("ShareGroupHeartbeat", 1, joins)
            return bool(wire.ask("DescribeShareGroupOffsets", 1, asked).groups[0].topics)

        until(has_offsets, "the share-partitions are initialized")
        wire.ask("ShareGroupHeartbeat", 1, h(group_id="jobs", member_id="first", member_epoch=-1))


def groups(broker: Broker) -> None:
    a_group(broker)
    an_empty_share_group(broker)


# what a part of the lab needs before its examples, by the word of its path
BEFORE: dict[str, Callable[[Broker], object]] = {
    "topics": lambda broker: broker.lab.seed({"name": "seeded"}),
    "clients": push_metrics,
    "groups": groups,
}
MAY_BE_REFUSED = {"oauth", "partitions", "nodes"}  # without a listener of OAUTHBEARER, or without another node


def asked(route: Route) -> tuple[str, bytes | None]:
    """Path and body of a route's example."""
    values = example_values(route.example)
    assert isinstance(values, dict)
    path = "/".join(quote(str(values.pop(one[1:-1])), safe="") if one[:1] == "{" else one for one in route.segments)
    if route.takes_body or route.form is not None:
        return f"/{path}", json.dumps(values).encode()
    return f"/{path}" + (f"?{urlencode(values, doseq=True)}" if values else ""), None


def answer(broker: Broker, route: Route) -> tuple[int, str, bytes]:
    """Status, content type and body."""
    path, body = asked(route)
    kind = "application/json" if route.form is None else "application/x-www-form-urlencoded"
    request = urllib.request.Request(f"{broker.lab_url}{path}", body, {"Content-Type": kind}, method=route.method)
    try:
        with urllib.request.urlopen(request, timeout=60) as found:
            return found.status, found.headers["Content-Type"], found.read()
    except HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read()


@pytest.mark.slow
def test_examples_are_answered_as_the_document_says(broker: Broker, described: Any) -> None:
    prepared: set[str] = set()
    for route in every_route():
        if route.part in BEFORE and route.part not in prepared:
            prepared.add(route.part)
            BEFORE[route.part](broker)
        status, kind, body = answer(broker, route)
        assert status == 200 or route.part in MAY_BE_REFUSED, f"{route.name}: {status} {body.decode()}"
        responses = described["paths"][route.path][route.method.lower()]["responses"]
        content = responses[str(status)]["content"][kind.partition(";")[0]]
        found = json.loads(body) if "json" in kind else body.decode()
        errors = list(Draft202012Validator({**described, **content["schema"]}).iter_errors(found))
        assert not errors, f"{route.name}: {[f'{error.json_path}: {error.message}' for error in errors]}"
