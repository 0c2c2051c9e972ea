"""Many rules at once: a request meets exactly those that are for it, however they are found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ottla.broker.lab.faults.fields import fields_of, names_partitions_of_topics
from ottla.broker.lab.faults.index import Indexed, index_of, values_test
from ottla.broker.lab.faults.matching import Match, topic_names
from ottla.broker.lab.faults.rules import Rule
from ottla.broker.lab.seam import Asked
from ottla.protocol import messages as m
from ottla.protocol.structs import Struct

from ..support.ask import fetch_message
from ..support.faulty import DELAY, HEARTBEAT, REQUESTS, Faulty, applied_to, error
from ..support.lab import LabWorld

OTHERS: list[dict[str, Any]] = [
    *({"topic": f"other-{one}"} for one in range(5)),
    *({"group": f"other-{one}*"} for one in range(5)),
    {"partition": 99},
    {"node": 99},
    {"node": 99, "group": "g"},
    {"client_id": "client", "group": "other"},
    {"partition": 1, "topic": "other"},
    {"client_id": "other"},
    {"client_id": "oth?r"},
    {"principal": "User:other"},
    {"listener": "INSIDE"},
    {"member": "other", "group": "g"},
    {"transactional_id": "other"},
    {"topic": "orders", "partition": 98},
    {"versions": "18"},
    {"api": "DeleteTopics"},
]


@pytest.mark.long
@pytest.mark.parametrize(("match", "request_", "is_matched"), REQUESTS)
def test_a_rule_among_many(match: dict[str, Any], request_: tuple[str, int, Any], is_matched: bool) -> None:
    faulty = Faulty("orders")
    others = [faulty.add(action=DELAY, **other) for other in OTHERS]
    rule = faulty.add(action=DELAY, **match)
    assert applied_to(faulty, rule, *request_) == is_matched
    assert [one.fault for one in others if one.applied] == []


def test_a_rule_and_a_hold_on_the_same_request() -> None:
    faulty = Faulty()
    lab = LabWorld(faulty.world)
    lab.ask("POST /v1/requests/holds", api="Heartbeat")
    rule = faulty.add(action=DELAY, group="g")
    assert not applied_to(faulty, rule, *HEARTBEAT), "it is held before"
    assert lab.ask("POST /v1/requests/release", count=1)["released"] == [1]
    assert rule.applied == 1


class Session:
    """A fetch session of a client, with the partitions 0 of some topics."""

    def __init__(self, faulty: Faulty, *topics: str) -> None:
        self._faulty = faulty
        reply = faulty.ask("Fetch", 12, self._request(0, topics))
        self._id, self._epoch = reply.session_id, 0

    def _request(self, epoch: int, topics: tuple[str, ...], forgotten: str = "") -> Any:
        request = fetch_message("orders", 0, wait_ms=0)
        request.session_id, request.session_epoch = getattr(self, "_id", 0), epoch
        partition = request.topics[0].partitions[0]
        request.topics = [m.FetchRequest.FetchTopic(topic=topic, partitions=[partition]) for topic in topics]
        request.forgotten_topics_data = [
            m.FetchRequest.ForgottenTopic(topic=topic, partitions=[0]) for topic in (forgotten,) if topic
        ]
        return request

    def meets(self, rule: Rule, *more: str, forgotten: str = "") -> bool:
        """Whether the next fetch of the session, which adds or forgets topics, meets a rule."""
        self._epoch += 1
        return applied_to(self._faulty, rule, "Fetch", 12, self._request(self._epoch, more, forgotten))


def test_a_fetch_session_meets_the_rules_of_what_it_has_now() -> None:
    faulty = Faulty("orders", "bills", "mails")
    session, other = Session(faulty, "orders"), Session(faulty, "mails")
    rule = faulty.add(action=DELAY, topic="bill*")
    assert [one.meets(rule) for one in (session, other)] == [False, False]
    assert session.meets(rule, "bills")
    assert [one.meets(rule) for one in (session, other)] == [True, False]
    session.meets(rule, forgotten="bills")
    assert not session.meets(rule)


def in_full(faulty: Faulty, *matches: Match) -> list[int]:
    """The places of the matches that a Produce to the partition 0 of `orders` has to be tested for."""
    topics, tested = topic_names(faulty.world.broker), []

    def takes(place: int) -> Callable[[Asked, Struct], bool]:
        return lambda context, request: bool(tested.append(place))  # type: ignore[func-returns-value]

    rules = [Indexed(one, takes(place), False) for place, one in enumerate(matches)]
    faulty.faults.test_of = lambda api: index_of(api, rules, topics)  # type: ignore[method-assign]
    faulty.add(action=DELAY, api="Produce")
    faulty.produce("orders")
    return tested


def test_a_rule_is_tested_in_full_for_requests_with_each_of_its_values() -> None:
    matches = [
        Match(topic="orders", partition=0),
        Match(topic="orders", partition=7, listener="PLAINTEXT"),
        Match(client_id="client", topic="other"),
        Match(node=1, listener="PLAINTEXT"),
        Match(versions="18"),
        Match(versions="7-12"),
    ]
    assert in_full(Faulty("orders"), *matches) == [0, 3, 4, 5]
    assert in_full(Faulty("orders"), *matches, Match()) == [0, 3, 4, 5, 6]
    assert in_full(Faulty("orders"), *matches[1:3], matches[4]) == []


def test_a_fetch_of_other_topics_does_not_concern_a_rule_of_its_reply() -> None:
    faulty = Faulty("orders", "bills")
    session = Session(faulty, "orders")
    rules = [faulty.add(action=error("CORRUPT_MESSAGE"), topic="bill*"), faulty.add(action=DELAY, topic="bills")]
    seen: list[str] = []
    faulty.faults.arrived = lambda exchange: seen.append(exchange.context.api.name)  # type: ignore[method-assign]
    for rule in rules:
        assert not session.meets(rule)
    assert seen == []
    session.meets(rules[0], "bills")
    session.meets(rules[0])
    assert seen == ["Fetch", "Fetch"]


def test_a_rule_of_a_partition_does_not_concern_the_same_number_of_another_topic() -> None:
    faulty = Faulty("orders", "bills")
    request = fetch_message("orders", 0, wait_ms=0)
    r = m.FetchRequest
    other = r.FetchTopic(topic="bills", partitions=[r.FetchPartition(partition=1, partition_max_bytes=100)])
    request.topics, request.session_epoch = [*request.topics, other], 0
    seen: list[str] = []
    faulty.faults.arrived = lambda exchange: seen.append(exchange.context.api.name)  # type: ignore[method-assign]
    faulty.add(action=DELAY, topic="orders", partition=1)
    session = faulty.ask("Fetch", 12, request).session_id
    faulty.ask("Fetch", 12, r(session_id=session, session_epoch=1, max_bytes=100))
    assert seen == []
    faulty.add(action=DELAY, topic="bills", partition=1)
    faulty.ask("Fetch", 12, r(session_id=session, session_epoch=2, max_bytes=100))
    assert seen == ["Fetch"]


@pytest.mark.parametrize(
    ("message", "is_so"),
    [
        ("ProduceRequest", True),
        ("FetchRequest", True),
        ("OffsetFetchRequest", True),
        ("MetadataRequest", False),
        ("DeleteTopicsRequest", False),
        ("ElectLeadersRequest", True),
    ],
)
def test_where_partitions_stand_with_their_topic(message: str, is_so: bool) -> None:
    assert names_partitions_of_topics(fields_of(message)) == is_so


def test_values_and_patterns() -> None:
    test = values_test(["a", "b*", 7, "[xy]z"])
    assert [one for one in ("a", "ab", "b", "bcd", 7, 8, "yz", "az", None, "") if test(one)] == [
        "a",
        "b",
        "bcd",
        7,
        "yz",
    ]
    assert not values_test(["a"])("b")
