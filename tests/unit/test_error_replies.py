"""The declarations of where errors stand in the replies of an API, and the replies that are made from them."""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from ottla.broker.apis import apis
from ottla.broker.error_places import EVERYWHERE, Place, Text, named, place_of, places_of, rows
from ottla.broker.error_replies import put_error, reply_with_error, take_out
from ottla.broker.net.api import Api
from ottla.protocol import codec, messages, schema
from ottla.protocol.errors import CODES, ApiError, Errors
from ottla.protocol.schema import StructSchema
from ottla.protocol.text import Json

from ..oracle import documented_errors
from ..oracle.error_reply_cases import FILLS, Case, cases, recorded
from ..support.sources import trees
from ..support.transcripts import FOLDER

APIS = list(apis(unstable=True).values())
VERSIONS = [(api, version) for api in APIS for version in range(api.low, api.high + 1)]
IN_ANOTHER_ORDER = {"Produce", "WriteTxnMarkers"}  # Kafka makes these replies from hash maps


def in_some_order(plain: Json) -> Json:
    if isinstance(plain, dict):
        return {name: in_some_order(value) for name, value in plain.items()}
    return sorted(map(in_some_order, plain), key=repr) if isinstance(plain, list) else plain


def requested(api: Api, version: int) -> Any:
    return codec.parse(api.request, version, Case(api, version, FILLS[0], ApiError(0)).request)


@pytest.mark.slow
def test_replies_to_failed_requests_are_kafkas() -> None:
    found = Counter[bool]()
    for case, answer in zip(cases(), recorded(), strict=True):
        if "none" in answer:  # a request that Kafka's own class cannot answer
            continue
        api, version, expected = case.api, case.version, bytes.fromhex(answer["reply"])
        reply = reply_with_error(api, version, codec.parse(api.request, version, case.request), case.error)
        made = bytes(codec.build(api.response, version, reply))
        found[made == expected] += 1
        if api.name in IN_ANOTHER_ORDER:
            made_plain, expected_plain = (
                in_some_order(codec.as_plain(codec.parse(api.response, version, data))) for data in (made, expected)
            )
            assert made_plain == expected_plain, str(case)
        else:
            assert made == expected, f"{case}: {reply}, not {codec.parse(api.response, version, expected)}"
    assert found[True] > 1100
    assert found[False] < 50


def codes_in(struct: StructSchema, version: int, path: str = "") -> Iterator[str]:
    for f in struct.fields:
        if version not in f.versions:
            continue
        if f.struct is not None:
            yield from codes_in(f.struct, version, f"{path}{f.name}.")
        elif f.type == "int16" and f.name.endswith("error_code"):
            yield f"{path}{f.name}"


@pytest.mark.parametrize("api", APIS, ids=[api.name for api in APIS])
def test_every_field_for_an_error_is_a_declared_place(api: Api) -> None:
    for version in range(api.low, api.high + 1):
        fields = set(codes_in(schema.load(api.response).root, version))
        assert {place.path for place in places_of(api, version) if place.code is not None} == fields


@pytest.mark.long
@pytest.mark.parametrize("api", APIS, ids=[api.name for api in APIS])
def test_every_declared_error_can_be_provoked_in_every_version(api: Api) -> None:
    for version in range(api.low, api.high + 1):
        request = requested(api, version)
        for place in places_of(api, version):
            for code in place.errors:
                reply = reply_with_error(api, version, request, ApiError(code), place=place)
                data = codec.build(api.response, version, reply)
                if place.code is not None and place.is_requested:
                    told = codec.as_plain(codec.parse(api.response, version, bytes(data)))
                    assert set(values(told, place.path.split("."))) == {code}


def values(plain: Any, path: list[str]) -> Iterator[object]:
    if isinstance(plain, list):
        for one in plain:
            yield from values(one, path)
    elif path:
        yield from values(plain[path[0]], path[1:])
    else:
        yield plain


def codes_of(plain: Any, path: str = "") -> Iterator[tuple[str, int]]:
    """The error codes of a reply in a transcript, with their paths; NONE is left out there."""
    for name, value in plain.items() if isinstance(plain, dict) else ():
        if name.endswith("error_code"):
            yield f"{path}{name}", value
        for one in value if isinstance(value, list) else ():
            yield from codes_of(one, f"{path}{name}.")


def test_the_errors_that_kafka_gave_are_declared_where_they_stood() -> None:
    by_name, found = {api.name: api for api in APIS}, set()
    for file in FOLDER.rglob("*.jsonl"):
        for line in file.read_text().splitlines():
            if "error_code" in line:
                entry = json.loads(line)
                found |= {(entry["api"], entry["version"], *one) for one in codes_of(entry["reply"]) if "api" in entry}
    assert len(found) > 500
    for name, version, path, code in sorted(found):
        declared = [place for place in places_of(by_name[name], version) if place.path == path]
        assert any(code in (*place.errors, *EVERYWHERE) for place in declared), (name, version, path, Errors(code).name)


@pytest.mark.parametrize("source", ["messages", "classes"])
def test_the_errors_that_kafka_documents_are_declared(source: str) -> None:
    declared = {api.name: {code for place in api.errors for code in (*place.errors, *EVERYWHERE)} for api in APIS}
    documented = {name: {CODES[code] for code in names} for name, names in documented_errors.recorded()[source].items()}
    assert sum(map(len, documented.values())) > 190
    missing = {name: [Errors(one).name for one in codes - declared[name]] for name, codes in documented.items()}
    assert not {name: codes for name, codes in missing.items() if codes}


def named_codes(module: ast.Module) -> set[str]:
    return {
        node.attr
        for node in ast.walk(module)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Errors"
    }


def test_the_errors_that_an_apis_file_names_are_declared() -> None:
    files = trees("broker/apis")
    for api in APIS:
        declared = {Errors(code).name for place in api.errors for code in (*place.errors, *EVERYWHERE)} | {"NONE"}
        assert named_codes(files[f"broker/apis/{api.module}.py"]) <= declared, api.name


def api_called(name: str) -> Api:
    (found,) = (api for api in APIS if api.name == name)
    return found


def place_at(api: Api, version: int, what: str) -> Place:
    (found,) = (place for place in places_of(api, version) if place.what == what)
    return found


def produce_request() -> messages.ProduceRequest:
    r = messages.ProduceRequest
    topics = [
        r.TopicProduceData(name=name, partition_data=[r.PartitionProduceData(index=i) for i in range(2)])
        for name in ("a", "b")
    ]
    return r(acks=1, topic_data=topics)


def told(response: Any) -> dict[tuple[str, int], int]:
    return {(t.name, p.index): p.error_code for t in response.responses for p in t.partition_responses}


def test_only_chosen_elements_are_answered() -> None:
    produce, error = api_called("Produce"), ApiError(Errors.MESSAGE_TOO_LARGE, "too large")
    reply: Any = reply_with_error(produce, 9, produce_request(), error, named({"topic": "b", "partition": 1}))
    assert told(reply) == {("b", 1): Errors.MESSAGE_TOO_LARGE}
    (partition,) = reply.responses[0].partition_responses
    assert (partition.base_offset, partition.error_message) == (-1, "too large")


def test_an_error_is_put_into_elements_that_the_handler_has_answered() -> None:
    produce, r = api_called("Produce"), messages.ProduceResponse
    place = place_at(produce, 9, "each partition")
    answered = r(
        responses=[
            r.TopicProduceResponse(
                name=name, partition_responses=[r.PartitionProduceResponse(index=i, base_offset=7) for i in range(2)]
            )
            for name in ("a", "b")
        ]
    )
    error = ApiError(Errors.REQUEST_TIMED_OUT)
    put = put_error(produce, 9, produce_request(), answered, error, named({"partition": 1}), place)
    assert (put.reply, put.count) == (answered, 2)
    assert told(answered) == {("a", 0): 0, ("a", 1): 7, ("b", 0): 0, ("b", 1): 7}
    assert [p.base_offset for t in answered.responses for p in t.partition_responses] == [7, -1, 7, -1]


def test_an_error_is_put_into_elements_that_are_encoded_already() -> None:
    api, r = api_called("OffsetFetch"), messages.OffsetFetchResponse
    groups: Any = codec.encoded("OffsetFetchResponse", 9, "groups")
    for group_id in ("g", "h"):
        partition = r.OffsetFetchResponsePartitions(partition_index=0, committed_offset=5, metadata="m")
        topic = r.OffsetFetchResponseTopics(name="t", partitions=[partition])
        groups.append(r.OffsetFetchResponseGroup(group_id=group_id, topics=[topic]))
    put = put_error(
        api,
        9,
        requested(api, 9),
        r(groups=groups),
        ApiError(Errors.UNSTABLE_OFFSET_COMMIT),
        named({"group": "h", "topic": "t"}),
        place_at(api, 9, "each partition"),
    )
    reply: Any = put.reply
    found = [(g.group_id, p.committed_offset, p.error_code) for g in reply.groups for p in g.topics[0].partitions]
    assert found == [("g", 5, 0), ("h", -1, Errors.UNSTABLE_OFFSET_COMMIT)]


def test_an_error_of_the_whole_replaces_the_reply() -> None:
    api, answered = api_called("JoinGroup"), messages.JoinGroupResponse(generation_id=5, member_id="m")
    place, error = place_at(api, 7, "the whole"), ApiError(Errors.REBALANCE_IN_PROGRESS)
    request = messages.JoinGroupRequest(group_id="g", member_id="m")
    put = put_error(api, 7, request, answered, error, named({"group": "g", "member": "m"}), place)
    assert put.count == 1
    assert put.reply == messages.JoinGroupResponse(error_code=27, protocol_name=None)
    unchanged = put_error(api, 7, request, answered, error, named({"group": "h"}), place)
    assert (unchanged.reply, unchanged.count) == (answered, 0)


def test_chosen_elements_are_taken_out_of_a_request_and_answered_beside_the_others() -> None:
    produce, request, r = api_called("Produce"), produce_request(), messages.ProduceResponse
    error, place = ApiError(Errors.NOT_LEADER_OR_FOLLOWER), place_at(produce, 9, "each partition")
    taken = take_out(produce, 9, request, error, lambda roles: roles["topic"] == "b" or roles["partition"] == 1, place)
    assert (taken.count, taken.is_all) == (3, False)
    assert [(t.name, [p.index for p in t.partition_data]) for t in request.topic_data] == [("a", [0])]
    handled = r(responses=[r.TopicProduceResponse(name="a", partition_responses=[r.PartitionProduceResponse(index=0)])])
    assert told(taken.complete(handled)) == {("a", 0): 0, ("a", 1): 6, ("b", 0): 6, ("b", 1): 6}
    assert [t.name for t in handled.responses] == ["a", "b"]


def test_a_request_of_which_nothing_is_left_is_answered_without_the_handler() -> None:
    produce, request = api_called("Produce"), produce_request()
    place = place_at(produce, 9, "each partition")
    taken = take_out(produce, 9, request, ApiError(Errors.CORRUPT_MESSAGE), named({}), place)
    assert (taken.count, taken.is_all, request.topic_data) == (4, True, [])
    assert set(told(taken.complete(messages.ProduceResponse())).values()) == {Errors.CORRUPT_MESSAGE}


def test_elements_that_name_their_topic_by_id_are_chosen_by_its_name() -> None:
    api, r = api_called("Fetch"), messages.FetchRequest
    ids = {"a": b"a" * 16, "b": b"b" * 16}
    request = r(topics=[r.FetchTopic(topic_id=i, partitions=[r.FetchPartition(partition=0)]) for i in ids.values()])
    where = named({"topic": "b"}, {topic_id: name for name, topic_id in ids.items()})
    place = place_of(api, 17, Errors.NOT_LEADER_OR_FOLLOWER)
    reply: Any = reply_with_error(api, 17, request, ApiError(Errors.NOT_LEADER_OR_FOLLOWER), where, place)
    assert [topic.topic_id for topic in reply.responses] == [ids["b"]]


@pytest.mark.parametrize(
    ("name", "version", "code", "what"),
    [
        ("Fetch", 17, "FETCH_SESSION_ID_NOT_FOUND", "the whole"),
        ("Fetch", 17, "OFFSET_OUT_OF_RANGE", "each partition"),
        ("Fetch", 17, "SECURITY_DISABLED", "the whole"),
        ("Fetch", 12, "SECURITY_DISABLED", "each partition"),
        ("Metadata", 13, "LISTENER_NOT_FOUND", "each partition"),
        ("LeaveGroup", 2, "FENCED_INSTANCE_ID", "the whole"),
        ("DescribeLogDirs", 1, "CLUSTER_AUTHORIZATION_FAILED", "each directory"),
    ],
)
def test_the_place_of_an_error(name: str, version: int, code: str, what: str) -> None:
    found = place_of(api_called(name), version, getattr(Errors, code))
    assert found is not None
    assert found.what == what


@pytest.mark.parametrize(
    ("text", "own", "of_unknown", "none"),
    [
        (Text.OWN, "why", None, None),
        (Text.OF_CODE, "The group id does not exist.", "The server", "The group id does not exist."),
        (Text.OWN_OR_OF_CODE, "why", "The server", "The group id does not exist."),
    ],
)
def test_the_message_beside_a_code(text: Text, own: str, of_unknown: str | None, none: str | None) -> None:
    assert text.of(ApiError(Errors.GROUP_ID_NOT_FOUND, "why")) == own
    unknown = text.of(ApiError(Errors.UNKNOWN_SERVER_ERROR, "a password"))
    assert unknown is None if of_unknown is None else str(unknown).startswith(of_unknown)
    assert text.of(ApiError(Errors.GROUP_ID_NOT_FOUND)) == none


def test_the_rows_of_the_documentation() -> None:
    found = [row for api in APIS for row in rows(api.name, api.errors)]
    assert len(found) > len(APIS)
    assert ("CreateTopics", "the configuration of each topic", "5 and later", "topics.topic_config_error_code") in [
        row[:4] for row in found
    ]


def test_an_error_of_the_whole_without_the_handler_stands_in_all_its_places() -> None:
    api = api_called("AlterPartitionReassignments")
    error, request = ApiError(Errors.INVALID_REQUEST, "why"), requested(api, 0)
    taken = take_out(api, 0, request, error, named({}), place_at(api, 0, "the whole"))
    assert (taken.count, taken.is_all) == (1, True)
    reply = taken.complete(messages.AlterPartitionReassignmentsResponse())
    assert reply == reply_with_error(api, 0, request, error)
