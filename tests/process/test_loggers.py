"""What the levels of loggers change in a running broker, and `kafka-configs` for them."""

from __future__ import annotations

import json

import pytest
from ottla.protocol import messages as m

from ottla.testing import Broker

from ..oracle.tools import tool
from ..support.wire import Closed, Wire

SERVER, CLEANER = "kafka.server.KafkaApis", "org.apache.kafka.storage.internals.log.LogCleaner"
REQUESTS, RIGHTS = "kafka.request.logger", "kafka.authorizer.logger"
PROCESSOR = "kafka.network.Processor"
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def set_level(wire: Wire, name: str, level: str | None) -> None:
    r = m.IncrementalAlterConfigsRequest
    change = r.AlterableConfig(name=name, config_operation=0 if level else 1, value=level)
    resource = r.AlterConfigsResource(resource_type=8, resource_name="1", configs=[change])
    assert wire.ask("IncrementalAlterConfigs", 1, r(resources=[resource])).responses[0].error_message is None


def level_of(wire: Wire, name: str) -> str:
    r = m.DescribeConfigsRequest
    resource = r.DescribeConfigsResource(resource_type=8, resource_name="1", configuration_keys=[name])
    (found,) = wire.ask("DescribeConfigs", 4, r(resources=[resource])).results[0].configs
    return str(found.value)


def lines(broker: Broker, words: str) -> list[str]:
    """Returns the messages of the log from these words on."""
    return [f"{words}{line.partition(words)[2]}" for line in broker.log.splitlines() if words in line]


def send_garbage(broker: Broker) -> None:
    with Wire(broker.bootstrap_servers) as other:
        other.send(bytes([0, 0, 0, 1, 0]))
        with pytest.raises(Closed):
            other.read_frame()


def test_a_level_decides_what_its_logger_and_those_below_it_write() -> None:
    with Broker(lab=False) as broker, Wire(broker.bootstrap_servers) as wire:
        for name, level, expected in (
            (PROCESSOR, "DEBUG", 1),
            (PROCESSOR, "INFO", 1),
            (PROCESSOR, None, 1),
            ("root", "TRACE", 2),
            (PROCESSOR, "ERROR", 2),
        ):
            set_level(wire, name, level)
            send_garbage(broker)
            assert len(lines(broker, "closing the connection")) == expected
        assert (level_of(wire, "root"), level_of(wire, PROCESSOR), level_of(wire, CLEANER)) == (
            "TRACE",
            "ERROR",
            "TRACE",
        )


@pytest.mark.long
def test_the_request_logger_writes_requests_and_replies_while_it_is_at_debug() -> None:
    with Broker(lab=False) as broker, Wire(broker.bootstrap_servers, client_id="shop") as wire:
        set_level(wire, REQUESTS, "DEBUG")
        wire.ask("Metadata", 12, m.MetadataRequest(topics=[]))
        set_level(wire, REQUESTS, None)
        wire.ask("Metadata", 12, m.MetadataRequest(topics=[]))
        found = [json.loads(line) for line in lines(broker, '{"format":1,')]
    assert [(one["direction"], one["api"], one["client_id"]) for one in found] == [
        ("reply", "IncrementalAlterConfigs", "shop"),
        ("request", "Metadata", "shop"),
        ("reply", "Metadata", "shop"),
        ("request", "IncrementalAlterConfigs", "shop"),
    ]


def test_the_authorizer_logger_writes_decisions() -> None:
    settings: dict[str, object] = {"authorizer.class.name": STANDARD, "allow.everyone.if.no.acl.found": "true"}
    acl = m.CreateAclsRequest.AclCreation(
        resource_type=2, resource_name="secret", principal="User:alice", host="*", operation=3, permission_type=3
    )
    resource = m.DescribeConfigsRequest.DescribeConfigsResource(resource_type=2, resource_name="secret")
    secret = m.DescribeConfigsRequest(resources=[resource])
    with Broker(settings, lab=False) as broker, Wire(broker.bootstrap_servers) as wire:
        assert wire.ask("CreateAcls", 3, m.CreateAclsRequest(creations=[acl])).results[0].error_code == 0
        set_level(wire, RIGHTS, "INFO")
        wire.ask("DescribeConfigs", 4, secret)
        set_level(wire, RIGHTS, "DEBUG")
        wire.ask("DescribeQuorum", 0, m.DescribeQuorumRequest())
        set_level(wire, RIGHTS, "WARN")
        wire.ask("DescribeConfigs", 4, secret)
        found = lines(broker, "Principal = ")
    who, where = "Principal = User:ANONYMOUS is", "from host = 127.0.0.1 on resource"
    assert found == [
        f"{who} Denied operation = DESCRIBE_CONFIGS {where} = Topic:LITERAL:secret for request = DescribeConfigs",
        f"{who} Allowed operation = DESCRIBE {where} = Cluster:LITERAL:kafka-cluster for request = DescribeQuorum",
        f"{who} Allowed operation = ALTER_CONFIGS {where} = Cluster:LITERAL:kafka-cluster for request = "
        "IncrementalAlterConfigs",
    ]


@pytest.mark.slow
@pytest.mark.oracle
def test_kafka_configs_describes_and_alters_them() -> None:
    def configs(*words: str) -> tuple[int, str]:
        at = ("--bootstrap-server", broker.bootstrap_servers, "--entity-type", "broker-loggers")
        done = tool("kafka.admin.ConfigCommand", *at, "--entity-name", "1", *words)
        return done.returncode, done.stdout + done.stderr

    with Broker(lab=False) as broker, Wire(broker.bootstrap_servers) as wire:
        code, said = configs("--describe")
        assert code == 0
        assert f"{CLEANER}=" in said
        assert "root=" in said
        assert configs("--alter", "--add-config", f"root=ERROR,{CLEANER}=TRACE")[0] == 0
        assert (level_of(wire, CLEANER), level_of(wire, SERVER)) == ("TRACE", "ERROR")
        assert f"{CLEANER}=TRACE sensitive=false synonyms={{}}" in configs("--describe")[1]
        assert configs("--alter", "--delete-config", CLEANER)[0] == 0
        assert level_of(wire, CLEANER) == "ERROR"
        assert configs("--alter", "--add-config", "no.such.logger=INFO")[0] == 1
        assert configs("--alter", "--add-config", f"{CLEANER}=LOUD")[0] == 1
