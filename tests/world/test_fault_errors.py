"""Every error that an API declares can be provoked by a rule, and stands where the API declares it."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker.apis import apis
from ottla.broker.error_places import Place, place_of, places_of
from ottla.broker.lab.faults.error_action import Fail
from ottla.broker.lab.faults.rules import Fault, Faults
from ottla.broker.net.api import Api
from ottla.protocol import codec
from ottla.protocol import messages as m
from ottla.protocol.errors import CODES, ApiError, Errors

from ..oracle.error_reply_cases import Case
from ..support.ask import fetch_message
from ..support.connected import ConnectedWorld
from ..support.lab import LabWorld
from ..support.topic_world import create

pytestmark = pytest.mark.long

NAMES = {code: name for name, code in CODES.items()}
TOPIC = m.MetadataRequest.MetadataRequestTopic(name="t")
CURSOR_TOPIC = m.DescribeTopicPartitionsRequest.TopicRequest(name="t")
OF_A_TOPIC: dict[str, tuple[int, Any]] = {  # requests whose errors stand at elements that only the reply names
    "Fetch": (12, fetch_message("t", 0)),
    "Metadata": (13, m.MetadataRequest(topics=[TOPIC])),
    "DescribeTopicPartitions": (0, m.DescribeTopicPartitionsRequest(topics=[CURSOR_TOPIC])),
}


def request_of(api: Api) -> tuple[int, Any]:
    """A version of an API, and a request for which there can be every error."""
    return OF_A_TOPIC[api.name] if api.name in OF_A_TOPIC else (api.high, full_request(api, api.high))


def full_request(api: Api, version: int) -> Any:
    """A request that names something in each of its arrays."""
    data = Case(api, version, "full", ApiError(Errors.INVALID_REQUEST)).request
    message = codec.parse(api.request, version, memoryview(bytearray(data)))
    if isinstance(message, m.ProduceRequest):
        message.acks = -1
    return message


def found_at(reply: Any, place: Place) -> set[int]:
    """The error codes of a place."""
    parts = [reply]
    for level in place.levels:
        parts = [inner for part in parts for inner in getattr(part, level.reply) or ()]
    assert place.code is not None
    return {int(getattr(part, place.code)) for part in parts}


@pytest.mark.parametrize("api", apis().values(), ids=lambda api: api.name)
def test_every_declared_error_of_an_api_can_be_provoked(api: Api) -> None:
    world = ConnectedWorld()
    faults = LabWorld(world).lab.part(Faults)
    create(world, "t")
    version, request = request_of(api)
    codes = {code for place in places_of(api, version) if place.code is not None for code in place.errors}
    assert codes
    for code in sorted(codes):
        rule = faults.add(Fault(api=api.name, times=1, action=Fail(NAMES[code])))
        client = world.connect()
        reply, place = client.ask(api.name, version, request), place_of(api, version, code)
        assert place is not None
        assert found_at(reply, place) == {code}, f"{NAMES[code]} at {place.what}: {reply}"
        assert rule.applied == 1
        faults.remove(rule.number)
        client.lose()


@pytest.mark.parametrize("api", [one for one in apis().values() if one.low < one.high], ids=lambda api: api.name)
def test_an_error_can_be_provoked_in_every_version_of_an_api(api: Api) -> None:
    world = ConnectedWorld()
    faults = LabWorld(world).lab.part(Faults)
    create(world, "t")
    rule = faults.add(Fault(api=api.name, action=Fail("UNKNOWN_SERVER_ERROR")))
    for version in range(api.low, api.high):
        request = OF_A_TOPIC[api.name][1] if api.name in OF_A_TOPIC else full_request(api, version)
        reply, place = world.connect().ask(api.name, version, request), place_of(api, version, -1)
        assert place is not None
        assert found_at(reply, place) == {-1}, version
    assert rule.applied == api.high - api.low
