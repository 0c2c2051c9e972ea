"""The rules of the verdict on connections that are lost and that are idle, beyond the clients that keep and break
each.
"""

from __future__ import annotations

import pytest
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.verdict_cases import metadata, produced
from ..support.verdict_client_cases import is_led_on, is_lost
from ..support.verdict_script import Script, records

AGAIN = "KIP-899.bootstraps-again"
IDLE = "protocol.closed-while-idle"
ADDRESSES = "KIP-302.all-addresses-tried"


def answers(s: Script, connection: int, listener: str) -> None:
    s.opens(connection, listener)
    s.asks("ApiVersions", 4, m.ApiVersionsRequest(), m.ApiVersionsResponse(), connection=connection)


def begun() -> Script:
    """A client that has come to its bootstrap servers, and then to another listener."""
    script = Script()
    answers(script, 1, "GIVEN")
    answers(script, 2, "NODE")
    return script


@pytest.mark.parametrize(
    ("knocks", "after_ms", "outcome"), [(5, 3000, "failed"), (4, 4000, "not exercised"), (20, 100, "not exercised")]
)
def test_a_client_has_some_time_and_some_attempts(knocks: int, after_ms: float, outcome: str) -> None:
    script = begun()
    for connection in range(3, 3 + knocks):
        is_lost(script, connection, after_ms=after_ms)
    assert script.rule(AGAIN)["outcome"] == outcome


def test_a_broker_that_answers_again_was_not_lost() -> None:
    script = begun()
    for connection in range(3, 13):
        is_lost(script, 2 * connection)
        answers(script, 2 * connection + 1, "NODE")
    answers(script, 99, "GIVEN")
    assert script.rule(AGAIN)["outcome"] == "not exercised"


def test_a_client_that_leaves_by_itself_has_not_lost_its_broker() -> None:
    script = begun()
    for connection in range(3, 13):
        script.opens(connection, "NODE")
        script.asks("ApiVersions", 4, m.ApiVersionsRequest(), lost=True, connection=connection, after_ms=3000)
        script.closes(connection)
    assert script.rule(AGAIN)["outcome"] == "not exercised"


def test_a_client_that_has_kept_its_first_connection_may_use_it() -> None:
    script = begun()
    is_lost(script, 3)
    script.asks("Metadata", 12, m.MetadataRequest(), m.MetadataResponse())
    assert script.rule(AGAIN)["outcome"] == "passed"


def test_a_client_with_one_listener_has_nowhere_else_to_go() -> None:
    script = Script()
    answers(script, 1, "NODE")
    for connection in range(3, 13):
        is_lost(script, connection)
    assert script.rule(AGAIN)["outcome"] == "not exercised"


def test_the_evidence_says_who_closed_the_connection() -> None:
    script = begun()
    for connection in range(3, 8):
        is_lost(script, connection)
    (failure,) = script.rule(AGAIN)["failures"]
    assert [(one["what"], one["message"]) for one in failure["evidence"][2:]] == [("closed by the broker", "fault")]


@pytest.mark.parametrize(("by", "reason"), [("client", ""), ("broker", "fault"), ("", "")])
def test_a_batch_may_come_again_after_a_connection_that_was_not_idle(by: str, reason: str) -> None:
    """Its reply can be lost."""
    script = Script()
    produced(script, records(0))
    script.closes(1, by, reason)
    produced(script, records(0), connection=2)
    assert script.rule(IDLE)["outcome"] == "not exercised"


def test_a_batch_that_was_refused_comes_again_though_its_connection_was_idle() -> None:
    script = Script()
    produced(script, records(0), 6)
    script.closes(1, "broker", "idle")
    produced(script, records(0), connection=2)
    assert script.rule(IDLE)["outcome"] == "passed"


def test_a_connection_that_was_refused_was_used() -> None:
    script = Script()
    script.waits(60_000)
    script.opens(2)
    script.refused(99, 0, connection=2)
    script.closes(2)
    script.asks("Metadata", 12, m.MetadataRequest(), m.MetadataResponse(), after_ms=2000, client_id=None)
    assert script.rule("protocol.closes-idle")["outcome"] == "not exercised"


@pytest.mark.parametrize(
    ("by", "reason", "unused_ms", "after_ms"),
    [
        ("client", "", 2000, 1000),
        ("client", "", 540_000, 500),
        ("broker", "idle", 539_000, 1000),
        ("broker", "stop", 540_000, 1000),
        ("", "", 540_000, 1000),
    ],
)
def test_a_connection_may_be_unused_for_a_while(by: str, reason: str, unused_ms: int, after_ms: int) -> None:
    """What is closed when the client ends is closed because it ends."""
    script = Script()
    metadata(script)
    script.waits(unused_ms)
    script.closes(1, by, reason)
    script.asks("Metadata", 12, m.MetadataRequest(), m.MetadataResponse(), connection=2, after_ms=after_ms)
    assert script.rule("protocol.closes-idle")["outcome"] == "not exercised"


@pytest.mark.parametrize(
    ("times", "after_ms", "outcome"), [(5, 3000, "failed"), (4, 4000, "not exercised"), (20, 100, "not exercised")]
)
def test_a_client_has_some_time_to_come_to_an_address(times: int, after_ms: float, outcome: str) -> None:
    script = Script()
    is_led_on(script, "TO_FIRST", 1, times, after_ms)
    assert script.rule(ADDRESSES)["outcome"] == outcome


@pytest.mark.parametrize("place", ["AT_FIRST", "AT_SECOND"])
def test_a_client_that_came_to_one_address_may_have_tried_no_other(place: str) -> None:
    script = Script()
    is_led_on(script, "TO_FIRST", 1)
    is_led_on(script, "TO_SECOND", 2)
    is_led_on(script, place, 3)
    is_led_on(script, place, 4)
    assert script.rule(ADDRESSES)["outcome"] == "not exercised"


def test_a_client_that_has_come_may_keep_its_first_connection() -> None:
    script = Script()
    is_led_on(script, "AT_FIRST", 1)
    is_led_on(script, "TO_FIRST", 2, 20)
    is_led_on(script, "AT_SECOND", 3)
    assert script.rule(ADDRESSES)["outcome"] == "passed"


@pytest.mark.parametrize(
    ("names", "code"), [((), 0), (None, 0), (("t",), Errors.UNKNOWN_TOPIC_OR_PARTITION)]
)  # no topics, all, and one that there is not
def test_a_client_that_is_led_nowhere_need_not_come(names: tuple[str, ...] | None, code: int) -> None:
    q, a = m.MetadataRequest, m.MetadataResponse
    topics = None if names is None else [q.MetadataRequestTopic(name=one) for one in names]
    told = [a.MetadataResponseTopic(name="t", error_code=code)]
    script = Script()
    script.opens(1, "TO_FIRST")
    for _ in range(10):
        script.asks("Metadata", 12, q(topics=topics), a(topics=told), after_ms=3000)
    assert script.rule(ADDRESSES)["outcome"] == "not exercised"


@pytest.mark.parametrize(("code", "outcome"), [(0, "failed"), (Errors.COORDINATOR_NOT_AVAILABLE, "not exercised")])
def test_a_client_comes_to_its_coordinator(code: int, outcome: str) -> None:
    found = m.FindCoordinatorResponse.Coordinator(key="g", error_code=code)
    script = Script()
    script.opens(1, "TO_FIRST")
    for _ in range(5):
        request = m.FindCoordinatorRequest(coordinator_keys=["g"])
        script.asks("FindCoordinator", 4, request, m.FindCoordinatorResponse(coordinators=[found]), after_ms=3000)
    assert script.rule(ADDRESSES)["outcome"] == outcome
