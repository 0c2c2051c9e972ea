"""Clients meet each error that is declared for the APIs that they use, once, and raise it or try again."""

from __future__ import annotations

import gc
import json
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import pytest
from ottla.broker.apis import apis
from ottla.protocol import messages
from ottla.protocol.errors import CODES, Errors

from ottla.testing import Broker

from ..oracle.kafka import program
from ..support.ports import free_port
from ..support.wire import Wire
from . import error_librdkafka, error_transactions
from .error_aiokafka import Aiokafka
from .error_clients import (
    ENDED,
    PASSWORD,
    SESSION_MS,
    TOPIC,
    USER,
    Addresses,
    Client,
    Heard,
    Program,
    new_name,
)
from .error_differences import ASTRAY, EITHER, NOTHING
from .error_differences import INSTEAD as IN_GROUPS_AND_TRANSACTIONS
from .error_differences_of_administration import INSTEAD as OF_ADMINISTRATION
from .error_differences_of_logins import INSTEAD as OF_LOGINS
from .error_kafka_python import KafkaPython
from .error_matrix import OPERATIONS, PAGE, table

# what a client leaves behind that could not connect is closed by Python's collector, at any time
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]
FACTS = json.loads((Path(__file__).parents[2] / "schemas" / "errors.json").read_text())
RETRIABLE = {int(code) for code, fact in FACTS.items() if fact["retriable"]}
BY_NAME = {api.name: api for api in apis().values()}
STREAMS: dict[str, object] = {
    "group.streams.topology.description.plugin.class": (
        "org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin"
    ),
    "group.streams.initial.rebalance.delay.ms": 0,
    "group.streams.min.heartbeat.interval.ms": 50,
    "group.streams.heartbeat.interval.ms": 50,
}
UPGRADE, UNSAFE_DOWNGRADE = 1, 3
# of those whose clients in other processes may ask meanwhile
CLIENT_IDS = {"franz-go": "kgo", "sarama": "sarama", "kafkajs": "errors"}
ON_NEW_TOPICS = ("CreatePartitions", "DeleteTopics")
KNOWN_TO_KAFKAJS, UNKNOWN_TO_KAFKAJS = 88, -99  # the latest code that it knows, and its own for others
UNEXPECTED = "java.lang.IllegalStateException: Unexpected error code"
# What a client hears instead of the error, where Kafka does not call the error retriable.
INSTEAD: dict[tuple[str, str], dict[str, Heard]] = {
    # it does not look at the error of a topic (KafkaAdminClient.listTopics)
    ("java", "Metadata"): dict.fromkeys(
        (
            *("INVALID_TOPIC_EXCEPTION", "TOPIC_AUTHORIZATION_FAILED", "INVALID_REQUEST"),
            "REBOOTSTRAP_REQUIRED",  # it bootstraps again (KIP-1102; NetworkClient.DefaultMetadataUpdater)
        ),
        NOTHING,
    ),
    # it stands in the description of the directory (KafkaAdminClient.describeLogDirs, LogDirDescription.error)
    ("java", "DescribeLogDirs"): {"LOG_DIR_NOT_FOUND": NOTHING},
    # the group may be a classic one (DescribeConsumerGroupsHandler.handleError)
    ("java", "ConsumerGroupDescribe"): {"UNSUPPORTED_VERSION": NOTHING, "GROUP_ID_NOT_FOUND": NOTHING},
    # an administrator tries again (AlterConsumerGroupOffsetsHandler.handleError)
    ("java", "OffsetCommit"): {"REBALANCE_IN_PROGRESS": NOTHING},
    # the partition is left out, with a warning (ListConsumerGroupOffsetsHandler and ListShareGroupOffsetsHandler,
    # handleResponse)
    ("java", "OffsetFetch"): {"TOPIC_AUTHORIZATION_FAILED": NOTHING},
    ("java", "DescribeShareGroupOffsets"): {"TOPIC_AUTHORIZATION_FAILED": NOTHING},
    # the user is left out (DescribeUserScramCredentialsResult.all)
    ("java", "DescribeUserScramCredentials"): {"RESOURCE_NOT_FOUND": NOTHING},
    # the records are there (Sender.completeBatch; of kafka-python sender.py, _complete_batch; of sarama
    # async_producer.go, handleSuccess; of aiokafka sender.py, SendProduceReqHandler)
    ("java", "Produce"): {"DUPLICATE_SEQUENCE_NUMBER": NOTHING},
    # what the application can do about it has an exception, and what it does not name words of its own
    # (FetchCollector.handleInitializeErrors)
    ("java", "Fetch"): {
        "OFFSET_OUT_OF_RANGE": "org.apache.kafka.clients.consumer.OffsetOutOfRangeException",
        "CORRUPT_MESSAGE": "org.apache.kafka.common.KafkaException: Encountered corrupt message",
        "CLUSTER_AUTHORIZATION_FAILED": UNEXPECTED,
        "UNSUPPORTED_VERSION": UNEXPECTED,
        "UNSUPPORTED_COMPRESSION_TYPE": UNEXPECTED,
        "OFFSET_MOVED_TO_TIERED_STORAGE": UNEXPECTED,
    },
    # it joins again (AbstractCoordinator.JoinGroupResponseHandler; AbstractHeartbeatRequestManager.onErrorResponse)
    ("java", "JoinGroup"): dict.fromkeys(("UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS", "MEMBER_ID_REQUIRED"), NOTHING),
    ("java", "ConsumerGroupHeartbeat"): dict.fromkeys(("UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH"), NOTHING),
    # no result is made, and an assertion fails (rdkafka_admin.c, rd_kafka_admin_response_parse)
    ("librdkafka", "Metadata"): {"REBOOTSTRAP_REQUIRED": ENDED},
    # the coordinator is looked up for the consumer's group, which an admin client does not have
    # (rdkafka_request.c, rd_kafka_handle_OffsetFetch)
    ("librdkafka", "OffsetFetch"): {"COORDINATOR_NOT_AVAILABLE": ENDED, "NOT_COORDINATOR": ENDED},
    # its own code for `auto.offset.reset=error` (rdkafka_offset.c, rd_kafka_offset_reset)
    ("librdkafka", "Fetch"): {"OFFSET_OUT_OF_RANGE": -140},
    # it asks again after 500 ms whatever the error (rdkafka_offset.c, rd_kafka_toppar_handle_OffsetForLeaderEpoch)
    ("librdkafka", "OffsetForLeaderEpoch"): {"TOPIC_AUTHORIZATION_FAILED": NOTHING},
    # it joins again (rdkafka_cgrp.c, rd_kafka_cgrp_handle_JoinGroup)
    ("librdkafka", "JoinGroup"): dict.fromkeys(("UNKNOWN_MEMBER_ID", "MEMBER_ID_REQUIRED"), NOTHING),
    # nothing is returned for the resource: the error is not looked at (admin/_configs.py,
    # _describe_configs_process_responses)
    ("kafka-python", "DescribeConfigs"): dict.fromkeys(
        (
            *("INVALID_TOPIC_EXCEPTION", "TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED"),
            *("CLUSTER_AUTHORIZATION_FAILED", "INVALID_CONFIG", "INVALID_REQUEST"),
        ),
        NOTHING,
    ),
    ("franz-go", "Produce"): dict.fromkeys(  # it tries again, in a new epoch (sink.go, handleReqRespBatch)
        (
            *("DUPLICATE_SEQUENCE_NUMBER", "OUT_OF_ORDER_SEQUENCE_NUMBER", "UNKNOWN_PRODUCER_ID"),
            *("INVALID_PRODUCER_EPOCH", "INVALID_PRODUCER_ID_MAPPING"),
        ),
        NOTHING,
    ),
    # it joins again (consumer_group.go, handleJoinResp)
    ("franz-go", "JoinGroup"): dict.fromkeys(("UNKNOWN_MEMBER_ID", "MEMBER_ID_REQUIRED"), NOTHING),
    ("kafkajs", "CreateTopics"): {"TOPIC_ALREADY_EXISTS": NOTHING},  # it returns false (admin/index.js, createTopics)
    # it begins again where its configuration says (consumerGroup.js, recoverFromFetch)
    ("kafkajs", "Fetch"): {"OFFSET_OUT_OF_RANGE": NOTHING},
    # it joins again (consumerGroup.js, joinAndSync)
    ("kafkajs", "JoinGroup"): dict.fromkeys(("UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS"), NOTHING),
    # it says so in its log, and tries again (fetcher.py, _proc_fetch_request)
    ("aiokafka", "Fetch"): dict.fromkeys(
        (
            *("CLUSTER_AUTHORIZATION_FAILED", "UNSUPPORTED_VERSION", "UNSUPPORTED_COMPRESSION_TYPE"),
            "OFFSET_MOVED_TO_TIERED_STORAGE",
        ),
        NOTHING,
    ),
    # what it does not know has no code (errors.py, for_code), nor has its exception for a producer that is fenced
    # (sender.py, SendProduceReqHandler)
    ("aiokafka", "Produce"): {"DUPLICATE_SEQUENCE_NUMBER": NOTHING}
    | dict.fromkeys(
        (
            *("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED", "TRANSACTION_ABORTABLE"),
            *("UNSUPPORTED_COMPRESSION_TYPE", "INVALID_RECORD", "UNKNOWN_TOPIC_ID"),
        ),
        -1,
    ),
    # it joins again; what it does not know, or expect at this place, has no code (group_coordinator.py,
    # CoordinatorGroupRebalance.perform_group_join)
    ("aiokafka", "JoinGroup"): dict.fromkeys(("UNKNOWN_MEMBER_ID", "MEMBER_ID_REQUIRED"), NOTHING)
    | dict.fromkeys(("REBALANCE_IN_PROGRESS", "GROUP_MAX_SIZE_REACHED", "FENCED_INSTANCE_ID"), -1),
    # there is no offset for the time, it says; what it does not know has no code (fetcher.py, _proc_offset_request)
    ("aiokafka", "ListOffsets"): {"UNSUPPORTED_FOR_MESSAGE_FORMAT": NOTHING}
    | dict.fromkeys(("FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "OFFSET_NOT_AVAILABLE"), -1),
    # its version has no place for an error of the group; what it does not expect in a partition has no code
    # (group_coordinator.py, _do_fetch_commit_offsets)
    ("aiokafka", "OffsetFetch"): dict.fromkeys(
        (
            *("INVALID_GROUP_ID", "UNKNOWN_MEMBER_ID", "GROUP_AUTHORIZATION_FAILED", "GROUP_ID_NOT_FOUND"),
            "STALE_MEMBER_EPOCH",
        ),
        NOTHING,
    )
    | dict.fromkeys(("TOPIC_AUTHORIZATION_FAILED", "UNSTABLE_OFFSET_COMMIT", "UNKNOWN_TOPIC_ID"), -1),
    # the commit has failed, it says (group_coordinator.py, _do_commit_offsets), and what it does not know has no code
    ("aiokafka", "OffsetCommit"): dict.fromkeys(
        (
            *("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS", "GROUP_MAX_SIZE_REACHED"),
            *("FENCED_INSTANCE_ID", "UNKNOWN_TOPIC_ID", "FENCED_MEMBER_EPOCH", "STALE_MEMBER_EPOCH"),
        ),
        -1,
    ),
    ("aiokafka", "CreatePartitions"): {"THROTTLING_QUOTA_EXCEEDED": -1},  # it does not know the code
    # it does not look at the error (admin.go, ListConsumerGroups)
    ("sarama", "ListGroups"): {"CLUSTER_AUTHORIZATION_FAILED": NOTHING},
    ("sarama", "Produce"): {"DUPLICATE_SEQUENCE_NUMBER": NOTHING},
    # likewise (admin/_cluster.py, _async_describe_log_dirs)
    ("kafka-python", "DescribeLogDirs"): {"CLUSTER_AUTHORIZATION_FAILED": NOTHING},
    # it gives the name of its exception only, and has none for this code (admin/_groups.py,
    # _convert_delete_groups_response)
    ("kafka-python", "DeleteGroups"): {"GROUP_DELETION_FAILED": 0},
    ("kafka-python", "Produce"): {"DUPLICATE_SEQUENCE_NUMBER": NOTHING},
    # it says so in its log, and asks again (Fetcher._validate_offsets_for_node)
    ("kafka-python", "OffsetForLeaderEpoch"): {"TOPIC_AUTHORIZATION_FAILED": NOTHING},
    # it joins again (coordinator/base.py, _process_join_group_response)
    ("kafka-python", "JoinGroup"): dict.fromkeys(
        ("UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS", "MEMBER_ID_REQUIRED"), NOTHING
    ),
    **IN_GROUPS_AND_TRANSACTIONS,
    **OF_ADMINISTRATION,
    **OF_LOGINS,
}
LEFT_OUT = {
    # frees a message that is not its own (rdkafka_admin.c, rd_kafka_DescribeUserScramCredentialsResponse_parse), after
    # which anything may happen
    ("librdkafka", "DescribeUserScramCredentials", "CLUSTER_AUTHORIZATION_FAILED"),
    # a consumer without an instance id does not end after this error
    ("librdkafka", "JoinGroup", "FENCED_INSTANCE_ID"),
    ("librdkafka", "SyncGroup", "FENCED_INSTANCE_ID"),
    ("librdkafka", "Heartbeat", "FENCED_INSTANCE_ID"),
    *(("franz-go", api, error) for api, errors in ASTRAY.items() for error in errors),
}


@pytest.fixture(scope="module")
def port() -> int:
    """Of the listener where clients log in."""
    return free_port()


@pytest.fixture(scope="module")
def broker(port: int) -> Iterator[Broker]:
    settings: dict[str, object] = {
        "listeners": f"PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:{port}",
        "ottla.users": f"{USER}:{PASSWORD}",
        "delegation.token.secret.key": "secret",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:ANONYMOUS;User:{USER}",
        "group.min.session.timeout.ms": SESSION_MS,
        "group.initial.rebalance.delay.ms": 0,
        **STREAMS,
    }
    with Broker(settings) as running:
        yield running


@pytest.fixture(scope="module")
def clients(
    broker: Broker, port: int, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Callable[[str], Client]]:
    """Returns the client with a name, which is started on its first use."""
    at = Addresses(broker.bootstrap_servers, f"127.0.0.1:{port}", broker.lab_url)
    given = (at.bootstrap, at.secured, USER, PASSWORD)

    def of_go(what: str) -> Program:
        return Program([str(request.getfixturevalue("go_program")), at.bootstrap, what, at.secured, USER, PASSWORD])

    def of_node() -> Program:
        return Program(["node", str(request.getfixturevalue("node_programs") / "errors.js"), *given])

    makes: dict[str, Callable[[], Client]] = {
        "java": lambda: Program([*program("broker", "ErrorCodes", tmp_path_factory.mktemp("java")), *given]),
        "librdkafka": lambda: Program([sys.executable, "-m", error_librdkafka.__name__, *at]),
        "kafka-python": lambda: KafkaPython(at),
        "franz-go": lambda: of_go("franz-errors"),
        "sarama": lambda: of_go("sarama-errors"),
        "kafkajs": of_node,
        "aiokafka": lambda: Aiokafka(at),
    }
    made: dict[str, Client] = {}

    def named(name: str) -> Client:
        if name not in made:
            made[name] = makes[name]()
        return made[name]

    first = named("kafka-python")
    first.prepare(TOPIC)
    first.prepare(error_transactions.WRITTEN)
    for _ in range(2):  # records to read
        assert first.do("Produce", TOPIC) == 0
    yield named
    for client in made.values():
        client.close()
    gc.collect()


def asked(broker: Broker, method: str, path: str, body: object = None) -> dict[str, int]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{broker.lab_url}{path}", method=method, data=data)
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=10) as answer:
        found: dict[str, int] = json.loads(answer.read())
    return found


@contextmanager
def failing_once(broker: Broker, client: str, api: str, code: int | str, nth: int = 1) -> Iterator[None]:
    """The n-th request of the API fails, with an error by its code or name. AssertionError unless it was asked."""
    rule = {"api": api, "nth": nth, "times": 1, "action": {"kind": "error", "error": str(code)}}
    if client in CLIENT_IDS:
        rule["client_id"] = CLIENT_IDS[client]
    number = asked(broker, "POST", "/v1/faults", rule)["number"]
    try:
        yield
    finally:
        assert asked(broker, "DELETE", f"/v1/faults/{number}")["applied"] == 1


def provoked(broker: Broker, client: str, api: str) -> AbstractContextManager[None]:
    """What lets a client ask the API, where it does not by itself."""
    if (client, api) == ("kafka-python", "OffsetForLeaderEpoch"):
        return failing_once(broker, client, "Fetch", "FENCED_LEADER_EPOCH", nth=2)
    return nullcontext()


@contextmanager
def with_steps(broker: Broker, client: str, api: str) -> Iterator[None]:
    """Has transactions as before Kafka 4.0 (KIP-890) where a client asks the API only then."""
    if client not in ("java", "franz-go") or api not in ("AddPartitionsToTxn", "AddOffsetsToTxn"):
        yield
        return
    with Wire(broker.bootstrap_servers) as wire:
        _finalize(wire, 1, UNSAFE_DOWNGRADE)
        try:
            yield
        finally:
            _finalize(wire, 2, UPGRADE)


def _finalize(wire: Wire, level: int, kind: int) -> None:
    update = messages.UpdateFeaturesRequest.FeatureUpdateKey(
        feature="transaction.version", max_version_level=level, upgrade_type=kind
    )
    reply = wire.ask("UpdateFeatures", 1, messages.UpdateFeaturesRequest(feature_updates=[update]))
    assert reply.error_code == 0


def topic_for(client: Client, api: str) -> str:
    """Returns a new name; the topic exists where the API changes topics."""
    name = new_name()
    if api in ON_NEW_TOPICS:
        client.prepare(name)
    return name


def is_right(client: str, api: str, code: int, heard: Heard, without: Heard) -> bool:
    """Whether a client does what it should: it raises the error, or does again what failed if that may help."""
    instead = INSTEAD.get((client, api), {}).get(Errors(code).name)
    if instead == NOTHING:
        return heard == without
    if instead == EITHER:
        return heard in (code, without)
    if instead is not None:
        return str(heard).startswith(str(instead))
    if client == "kafkajs" and code > KNOWN_TO_KAFKAJS:
        return heard in (code, UNKNOWN_TO_KAFKAJS)
    if heard == FACTS[str(code)]["message"]:  # the broker's words, which some clients return without the code
        return True
    return heard == code or (code in RETRIABLE and heard == without)


MARKS = {"java": pytest.mark.oracle, "franz-go": pytest.mark.go, "sarama": pytest.mark.go, "kafkajs": pytest.mark.node}
PAIRS = [
    pytest.param(client, api, marks=MARKS.get(client, ()), id=f"{client}-{api}")
    for client, operations in OPERATIONS.items()
    for api in operations
]


@pytest.mark.parametrize(("name", "api"), PAIRS)
def test_a_client_meets_each_error(broker: Broker, clients: Callable[[str], Client], name: str, api: str) -> None:
    client = clients(name)
    if api == "OffsetFetch":  # a reply with all offsets of the group has one, whatever was deleted before
        assert clients("kafka-python").do("OffsetCommit", TOPIC) == 0
    with with_steps(broker, name, api):
        wrong = met(broker, client, name, api)
    assert not wrong


def met(broker: Broker, client: Client, name: str, api: str) -> dict[str, tuple[Heard, Heard]]:
    """Lets a client meet each error. Returns those at which it does not do what it should, with what it hears, and what
    it hears without an error.
    """
    without = client.do(api, topic_for(client, api))
    wrong = {}
    for code in sorted({code for place in BY_NAME[api].errors for code in place.errors}):
        if (name, api, Errors(code).name) in LEFT_OUT:
            continue
        topic = topic_for(client, api)
        with provoked(broker, name, api), failing_once(broker, name, api, code):
            heard = client.do(api, topic)
        if not is_right(name, api, code, heard, without):
            wrong[Errors(code).name] = (heard, without)
    return wrong


def test_the_table_of_differences_names_declared_errors() -> None:
    for (_, api), errors in INSTEAD.items():
        declared = {code for place in BY_NAME[api].errors for code in place.errors}
        assert {CODES[error] for error in errors} <= declared


def test_the_documents_table_of_clients_is_what_is_computed() -> None:
    assert table() in PAGE.read_text(), "python -m tests.clients.error_matrix"
