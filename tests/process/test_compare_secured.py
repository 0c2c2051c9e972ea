"""`ottla compare` and `ottla replay` with brokers that want TLS and a log-in; and how a comparison ends."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Producer
from ottla.protocol import messages as m

from ottla.cli import main
from ottla.testing import Broker

from ..support.ask import create, fetch, produce
from ..support.compared import assert_same, compared
from ..support.poll import until
from ..support.ports import free_port
from ..support.tls import Listeners, make_certificates
from ..support.wire import Wire

pytestmark = pytest.mark.slow


class Secured:
    """A broker with a listener of TLS and SASL beside the plain one."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.broker = Broker(
            {
                **Listeners(folder).settings,
                "listeners": f"PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:{self.port}",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL",
                "ottla.users": "alice:secret",
            }
        )

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self.port}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def ca(folder: Path) -> str:
    return str(folder / "good" / "ca.crt")


@pytest.fixture(scope="module")
def pair(folder: Path) -> Iterator[tuple[Secured, Secured]]:
    a, b = Secured(folder), Secured(folder)
    with a.broker, b.broker:
        yield a, b


def test_log_ins_of_clients_pass_to_both_brokers_over_tls(pair: tuple[Secured, Secured], ca: str) -> None:
    with compared(*(one.servers for one in pair), "--ca-a", ca, "--ca-b", ca) as proxy:
        client = {
            "bootstrap.servers": proxy.bootstrap_servers,
            "security.protocol": "sasl_plaintext",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "alice",
            "sasl.password": "secret",
            "log_level": 0,
        }
        producer = Producer(client)
        producer.produce("secured", b"1")
        assert producer.flush(60) == 0
    assert_same(proxy, "SaslHandshake", "SaslAuthenticate", "Metadata", "Produce")
    assert "secret" not in json.dumps(proxy.events)
    for one in pair:
        with Wire(one.broker.bootstrap_servers) as wire:
            assert fetch(wire, "secured") == [b"1"]


def test_the_proxy_logs_in_at_b_by_itself(pair: tuple[Secured, Secured], ca: str) -> None:
    plain = pair[0].broker.bootstrap_servers
    options = ("--ca-b", ca, "--user-b", "alice", "--password-b", "secret")
    with compared(plain, pair[1].servers, *options) as proxy, Wire(proxy.bootstrap_servers) as wire:
        create(wire, "by-itself")
        assert produce(wire, "by-itself", b"1").error_code == 0
    assert_same(proxy, "CreateTopics", "Produce")


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_client_logs_in_at_a_with_scram_and_the_proxy_at_b(
    pair: tuple[Secured, Secured], ca: str, mechanism: str
) -> None:
    options = ("--ca-a", ca, "--ca-b", ca, "--user-b", "alice", "--password-b", "secret", "--mechanism-b", mechanism)
    with compared(*(one.servers for one in pair), *options) as proxy:
        client = {
            "bootstrap.servers": proxy.bootstrap_servers,
            "security.protocol": "sasl_plaintext",
            "sasl.mechanism": mechanism,
            "sasl.username": "alice",
            "sasl.password": "secret",
            "log_level": 0,
        }
        producer = Producer(client)
        producer.produce(f"with-{mechanism}", b"1")
        assert producer.flush(60) == 0
    assert_same(proxy, "Metadata", "Produce")
    skipped = {one["api"]: one["reason"] for one in proxy.summary["not_compared"]}
    assert skipped["SaslAuthenticate"] == "B has credentials of its own"


def test_a_log_in_that_b_refuses_is_a_difference(pair: tuple[Secured, Secured], ca: str) -> None:
    plain = pair[0].broker.bootstrap_servers
    options = ("--ca-b", ca, "--user-b", "alice", "--password-b", "wrong")
    with compared(plain, pair[1].servers, *options) as proxy, Wire(proxy.bootstrap_servers) as wire:
        assert wire.ask("Metadata", 9, m.MetadataRequest(topics=[])).brokers
    assert proxy.differences == [("Metadata", "connection")]
    (shown,) = (one for one in proxy.events if one["event"] == "difference")
    assert "B refused the credentials with error 58" in shown["b"]


def test_a_broker_with_another_authority_is_not_reached(pair: tuple[Secured, Secured], folder: Path) -> None:
    stranger = str(folder / "other" / "ca.crt")
    command = ["compare", pair[0].servers, pair[1].servers, "--ca-a", stranger, "--ca-b", stranger]
    done = CliRunner().invoke(main, [*command, "--listen", "127.0.0.1:0"])
    assert (done.exit_code, "CERTIFICATE_VERIFY_FAILED" in done.stderr) == (3, True)


def is_refused(servers: str) -> bool:
    """Whether nothing listens there any more."""
    try:
        Wire(servers).close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:  # the listener closed while this connection waited to be accepted
        return False
    return False


def test_a_second_ctrl_c_ends_at_once_and_keeps_the_exit_code(pair: tuple[Secured, Secured]) -> None:
    """B holds a reply for ever; the first Ctrl-C waits for it, the second does not."""
    a, b = (one.broker for one in pair)
    with (
        compared(a.bootstrap_servers, b.bootstrap_servers, "--timeout", "600") as proxy,
        Wire(proxy.bootstrap_servers) as wire,
        b.lab.hold_requests(api="ListGroups") as hold,
    ):
        assert wire.ask("ListGroups", 4, m.ListGroupsRequest()).error_code == 0
        hold.held(at_least=1)
        proxy.interrupt()
        until(lambda: is_refused(proxy.bootstrap_servers), "the first Ctrl-C")
        proxy.interrupt()
        proxy.end(by_itself=True)
    assert (proxy.code, proxy.summary["differences"]) == (0, 0)


# replay


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("replay") / "trace.jsonl"
    with Broker({"ottla.trace": path, "ottla.trace.raw": "frames"}) as broker, Wire(broker.bootstrap_servers) as wire:
        create(wire, "replayed")
        assert produce(wire, "replayed", b"1").error_code == 0
        assert fetch(wire, "replayed") == [b"1"]
    return path


def replay(trace: Path, *options: str, user: str = "", password: str = "") -> Result:
    environment = {"OTTLA_REPLAY_USER": user, "OTTLA_REPLAY_PASSWORD": password}
    return CliRunner().invoke(main, ["replay", *options, str(trace)], env=environment)


def test_a_replay_logs_in_over_tls(pair: tuple[Secured, Secured], ca: str, folder: Path, trace: Path) -> None:
    to = ("--to", pair[0].servers)
    done = replay(trace, *to, "--ca", ca, user="alice", password="secret")
    assert (done.exit_code, " 0 differences" in done.stdout) == (0, True), done.output
    stranger = str(folder / "other" / "ca.crt")
    for wrong, words in (
        (replay(trace, *to, "--ca", ca, user="alice", password="wrong"), "SaslAuthenticate as alice: error 58"),
        (replay(trace, *to, "--ca", stranger), "CERTIFICATE_VERIFY_FAILED"),
    ):
        assert (wrong.exit_code, words in wrong.stderr) == (3, True), wrong.stderr
    assert replay(trace, *to, "--ca", "no such file").exit_code == 2


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_replay_logs_in_with_scram(pair: tuple[Secured, Secured], ca: str, trace: Path, mechanism: str) -> None:
    to = ("--to", pair[0].servers, "--ca", ca, "--mechanism", mechanism)
    rules = trace.with_name("rules.yaml")
    rules.write_text("- {api: '*', path: '*', reason: the topic is there already}\n")
    done = replay(trace, *to, "--rules", str(rules), user="alice", password="secret")
    assert (done.exit_code, " 0 problems, 0 not sent" in done.stdout) == (0, True), done.output
    wrong = replay(trace, *to, user="alice", password="wrong")
    assert (wrong.exit_code, "SaslAuthenticate as alice: error 58" in wrong.stderr) == (3, True), wrong.stderr


def test_rules_of_a_user_count_in_a_replay_too(pair: tuple[Secured, Secured], trace: Path, tmp_path: Path) -> None:
    """The topic is there since it was made: all but that is the same."""
    servers = pair[1].broker.bootstrap_servers
    with Wire(servers) as wire:
        create(wire, "replayed")
    alone = replay(trace, "--to", servers, "--json")
    paths = {one["path"] for one in json.loads(alone.stdout)["differences"] if one["allowed"] is None}
    assert (alone.exit_code, "topics[replayed].error_code" in paths) == (1, True)
    file = tmp_path / "rules.yaml"
    file.write_text("- {api: CreateTopics, path: 'topics*', reason: it is there}\n"
                    "- {api: Produce, path: '*offset', reason: and has records}\n"
                    "- {api: Fetch, path: '*', reason: and has records}\n")  # fmt: skip
    ruled = replay(trace, "--to", servers, "--rules", str(file), "--json")
    assert [one for one in json.loads(ruled.stdout)["differences"] if one["allowed"] is None] == []


SPAN_US = 2_000_000


def test_the_times_of_a_trace_are_kept_if_asked(trace: Path, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in trace.read_text().splitlines()]
    first = next(one["mono_us"] for one in lines if "connection" in one)
    last = [one for one in lines if one["event"] == "request"][-1]
    for one in lines[lines.index(last) :]:
        one["mono_us"] = first + SPAN_US + one.get("mono_us", 0) - last["mono_us"]
    slow = tmp_path / "slow.jsonl"
    slow.write_text("".join(json.dumps(one) + "\n" for one in lines))
    with Broker() as broker:
        began = time.monotonic()
        assert replay(slow, "--to", broker.bootstrap_servers, "--time").exit_code == 0
    assert time.monotonic() - began >= SPAN_US / 1e6
