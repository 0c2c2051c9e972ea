"""`ottla verdict`: on a running broker and by a trace, with its exit codes."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import threading
import urllib.request
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ottla import verdict_connections, verdict_examination, verdict_fatal, verdict_login
from ottla.cli import main
from ottla.testing import Broker

from ..support.ask import batch, create, produce, produce_message
from ..support.poll import until
from ..support.verdict_reports import unlike
from ..support.wire import Wire

pytestmark = pytest.mark.slow

PROGRAM = """
import os
from confluent_kafka import Producer
producer = Producer({"bootstrap.servers": os.environ["OTTLA_BOOTSTRAP_SERVERS"], "log_level": 0})
for _ in range(4):
    producer.list_topics("t", timeout=60)
producer.close()
"""
READER = """
import os, sys
from confluent_kafka import Consumer
servers = {"bootstrap.servers": os.environ["OTTLA_BOOTSTRAP_SERVERS"], "log_level": 0}
often = {"topic.metadata.refresh.interval.ms": 500}
consumer = Consumer({**servers, **often, "group.id": "g", "client.id": "reader", "auto.offset.reset": "earliest"})
consumer.subscribe(["truncation"])
value = None
with open(sys.argv[1], "w") as file:
    while value != b"end":
        message = consumer.poll(1)
        if message is not None and not message.error():
            value = message.value()
            file.write(f"{message.offset()} ")
consumer.close()
"""
ENDLESS = """
import os, pathlib, sys, threading
from confluent_kafka import Producer

servers = {"bootstrap.servers": os.environ["OTTLA_BOOTSTRAP_SERVERS"], "client.id": "visitor", "log_level": 0}
producer = Producer(servers)
producer.list_topics("t", timeout=60)
try:
    pathlib.Path(sys.argv[1]).touch()
    threading.Event().wait()
except KeyboardInterrupt:
    sys.exit(7)
"""
MORTAL = """
import os, sys, time
from confluent_kafka import Consumer, KafkaException, Producer

servers = {"bootstrap.servers": os.environ["OTTLA_BOOTSTRAP_SERVERS"], "client.id": "mortal", "log_level": 0}

def write():
    producer = Producer({**servers, "transactional.id": "t"})
    producer.init_transactions(60)
    for _ in range(8):
        producer.begin_transaction()
        producer.produce("t", b"value")
        try:
            producer.commit_transaction(60)
        except KafkaException as error:
            if error.args[0].fatal():
                raise
            producer.abort_transaction(60)

def read(protocol, **more):
    died = []
    consumer = Consumer({**servers, "group.protocol": protocol, "group.id": protocol, "error_cb": died.append, **more})
    consumer.subscribe(["t"])
    end = time.monotonic() + 8
    while time.monotonic() < end and not any(one.fatal() for one in died):
        message = consumer.poll(0.1)
        if message is not None and message.error() and message.error().fatal():
            died.append(message.error())
    if died:
        raise KafkaException(died[-1])
    consumer.close()

with open(sys.argv[1], "a") as file:
    file.write("begins ")
try:
    write()
    read("classic", **{"group.instance.id": "i", "heartbeat.interval.ms": 200, "session.timeout.ms": 6000})
    read("consumer")
except KafkaException:
    sys.exit(1)
"""
LOGIN = """
import os, sys, time
from confluent_kafka import Producer

user, password, seconds = sys.argv[1:]
servers = {"bootstrap.servers": os.environ["OTTLA_BOOTSTRAP_SERVERS"], "log_level": 0}
login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanisms": "PLAIN", "sasl.username": user}
producer = Producer({**servers, **login, "sasl.password": password})
end = None
while end is None or time.monotonic() < end:
    producer.produce("t", b"value")
    producer.flush(60)
    end = end or time.monotonic() + float(seconds)  # the session has begun
producer.close()
"""
SELDOM = """
import os, sys, time
from confluent_kafka import Producer

servers = {"bootstrap.servers": os.environ["OTTLA_BOOTSTRAP_SERVERS"], "log_level": 0}
producer = Producer({**servers, "enable.idempotence": True, "linger.ms": 0})
for _ in range(int(sys.argv[1])):
    producer.produce("t", b"value")
    producer.flush(60)
    time.sleep(2)
producer.close()
"""
BROKEN = ["KIP-848.epoch-echoed", "KIP-848.rejoins-when-fenced"]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["verdict", *arguments])


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, Path]]:
    """A broker with a live verdict on a good client and a bad one, and the trace of both."""
    file = tmp_path_factory.mktemp("traces") / "t.jsonl"
    with Broker({"ottla.trace": str(file)}) as broker:
        broker.lab.post("verdict")
        for name in ("good", "bad"):
            with Wire(broker.bootstrap_servers, client_id=name) as wire:
                named = m.ApiVersionsRequest(client_software_name="wire", client_software_version="1")
                wire.ask("ApiVersions", 4, named)
                wire.ask("FindCoordinator", 4, m.FindCoordinatorRequest(coordinator_keys=[name]))
                for epoch in (0,) if name == "good" else (0, 7, 7):
                    beat = m.ConsumerGroupHeartbeatRequest(group_id=name, member_id="m", member_epoch=epoch)
                    beat.rebalance_timeout_ms, beat.subscribed_topic_names, beat.topic_partitions = 5000, ["t"], []
                    wire.ask("ConsumerGroupHeartbeat", 1, beat)
        yield broker, file


def test_a_trace_has_the_verdict_of_the_running_broker(trace: tuple[Broker, Path]) -> None:
    broker, file = trace
    chosen = "--examination", "consumer-group", "--json"

    def same() -> Result | None:
        """The verdict, once all is written and both connections are closed."""
        live = run("--live", broker.lab_url, *chosen)
        traced = run(str(file), *chosen)
        return None if unlike(json.loads(live.stdout), json.loads(traced.stdout)) else live

    live = until(same, "the trace has the verdict of the broker")
    assert live.exit_code == 1
    good, bad = json.loads(live.stdout)
    failed = [one["id"] for one in bad["rules"] if one["outcome"] == "failed"]
    assert (good["client_id"], failed) == ("good", BROKEN)


def test_a_trace_with_filters_has_no_verdict(trace: tuple[Broker, Path], tmp_path: Path) -> None:
    broker, _ = trace
    number = broker.lab.post("traces", client_id="shop-*")["number"]
    url = f"{broker.lab_url}/v1/traces/{number}"
    refused = run(url)
    words = "the trace was filtered (client_id=shop-*), and a verdict needs all requests: trace without filters"
    assert (refused.exit_code, refused.stderr) == (2, f"ottla: {url}: {words}\n")


def test_the_exit_code_says_what_was_found(trace: tuple[Broker, Path], tmp_path: Path) -> None:
    broker, file = trace
    bad = run(str(file), "--junit", str(tmp_path / "v.xml"))
    assert bad.exit_code == 1
    assert "FAILED         KIP-848.rejoins-when-fenced" in bad.stdout
    assert len(ET.parse(tmp_path / "v.xml").getroot()) == 2
    assert run(str(file), "--html", str(tmp_path / "none" / "v.html")).exit_code == 2
    assert run(str(file), "--examination", "network").exit_code == 0
    good = run("--live", broker.lab_url, "--client", "good", "--all")
    assert good.exit_code == 0
    assert "  passed         KIP-35.api-versions-first" in good.stdout
    assert run("--live", broker.lab_url, "--client", "good", "--strict").exit_code == 1  # it has not left its group
    nobody = run(str(file), "--client", "nobody")
    assert (nobody.exit_code, nobody.stderr) == (4, "ottla: no client with the client id nobody was examined\n")
    (tmp_path / "log").write_text("a line\n")
    assert run(str(tmp_path / "log")).exit_code == 2
    assert run(str(tmp_path / "none")).exit_code == 2
    assert run(str(file), "--live", broker.lab_url).exit_code == 2
    assert run(str(file), "--run", "true").exit_code == 2
    assert run("--live", "http://127.0.0.1:1").exit_code == 3
    assert run("http://127.0.0.1:1").exit_code == 3
    missing = run(f"{broker.lab_url}/v1/traces/77")
    assert (missing.exit_code, missing.stderr) == (2, "ottla: there is no trace 77\n")


def test_a_broker_that_has_begun_no_verdict_is_not_one_whose_clients_failed() -> None:
    with Broker() as broker:
        refused = run("--live", broker.lab_url)
        assert (refused.exit_code, refused.stdout) == (2, "")
        refused = run(broker.lab_url)
        words = "the broker writes no trace: ottla lab call start_trace begins one"
        assert (refused.exit_code, refused.stderr) == (2, f"ottla: {words}\n")


def test_the_report_is_written_as_a_page_and_as_a_badge(trace: tuple[Broker, Path], tmp_path: Path) -> None:
    broker, file = trace
    page, whole, one = (tmp_path / name for name in ("v.html", "v.svg", "good.svg"))
    assert run(str(file), "--html", str(page), "--badge", str(whole)).exit_code == 1
    assert page.read_text().count("<h2") == 2
    assert "<title>Kafka protocol: " in whole.read_text()
    assert run("--live", broker.lab_url, "--client", "good", "--badge", str(one)).exit_code == 0
    assert "<title>wire 1: " in one.read_text()
    with urllib.request.urlopen(f"{broker.lab_url}/v1/verdict?format=html", timeout=60) as answer:
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
        assert answer.read().count(b"<h2") == 2


def test_it_examines_a_program_on_a_broker_of_its_own(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = run("--examination", "basic", "--listen", "127.0.0.1:0", "--run", f"{sys.executable} {program}", "--all")
    assert done.exit_code == 0, done.output
    assert "ottla: not come to: the leader of a partition has moved (request 3 of Produce: " in done.stderr
    assert "ottla: provoked: a topic without a leader (request 3 of Metadata: " in done.stderr
    assert (
        "  passed         protocol.metadata-first" in done.stdout
        or "  passed         protocol.client-id" in done.stdout
    )
    assert run("--listen", "127.0.0.1:0", "--run", "true").exit_code == 4


def test_an_unclean_election_cuts_off_what_a_consumer_has_read(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(READER)
    command = f"{sys.executable} {program} {tmp_path / 'read'}"
    done = run("--examination", "truncation", "--listen", "127.0.0.1:0", "--run", command, "--all")
    assert done.exit_code == 0, done.output
    assert done.stderr.count("ottla: provoked: ") == 4
    rules = ("KIP-951.leader-taken", "KIP-320.truncation-found")
    assert done.stdout.splitlines()[1:] == [f"  passed         {one}" for one in rules]
    assert (tmp_path / "read").read_text() == "0 1 2 3 4 2 "  # the last record is where the first lost one was
    assert run("--examination", "truncation", "--live", "http://127.0.0.1:1").exit_code == 2


def test_a_client_logs_in_again_before_its_session_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(verdict_login.SETTINGS, "connections.max.reauth.ms", 1500)
    program = tmp_path / "program.py"
    program.write_text(LOGIN)
    command = f"{sys.executable} {program} {verdict_login.USER} {verdict_login.PASSWORD}"
    asked = ("--examination", "login", "--listen", "127.0.0.1:0", "--all", "--run")
    done = run(*asked, f"{command} 2")
    assert done.exit_code == 0, done.output
    assert f"ottla: provoked: {verdict_login.STEP}" in done.stderr
    assert done.stdout.splitlines()[1:] == [f"  passed         {one}" for one in verdict_login.RULES]
    done = run(*asked, f"{command} 0")
    assert f"ottla: not come to: {verdict_login.STEP}" in done.stderr
    assert done.stdout.splitlines()[1] == f"  not exercised  {verdict_login.RULES[0]}"
    assert run("--examination", "login", "--live", "http://127.0.0.1:1").exit_code == 2


def test_a_client_begins_again_when_the_broker_that_it_knows_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdict_connections, "LOST_S", 3.0)
    program = tmp_path / "program.py"
    program.write_text(SELDOM)
    asked = ("--examination", "connections", "--listen", "127.0.0.1:0", "--all", "--run")
    done = run(*asked, f"{sys.executable} {program} 8")
    assert done.exit_code == 0, done.output
    for step in verdict_connections.STEPS:
        assert f"ottla: provoked: {step}" in done.stderr
    assert done.stdout.splitlines()[1:] == [f"  passed         {one}" for one in verdict_connections.RULES]
    done = run(*asked, f"{sys.executable} {program} 1")
    for step in verdict_connections.STEPS:
        assert f"ottla: not come to: {step}" in done.stderr
    assert run("--examination", "connections", "--live", "http://127.0.0.1:1").exit_code == 2


def outcomes(done: Result) -> dict[str, str]:
    return {line.split()[-1]: " ".join(line.split()[:-1]) for line in done.stdout.splitlines()[1:]}


def test_a_program_that_ends_by_an_error_is_run_again(tmp_path: Path) -> None:
    """Of librdkafka. A batch that is out of order ends its producer or not."""
    program, runs = tmp_path / "program.py", tmp_path / "runs"
    program.write_text(MORTAL)
    asked = ("--examination", "fatal", "--listen", "127.0.0.1:0", "--all", "--run")
    done = run(*asked, f"{sys.executable} {program} {runs}")
    said = [line for line in done.stderr.splitlines() if "provoked" in line or "not come to" in line]
    assert said == [f"ottla: provoked: {step}" for step in verdict_fatal.STEPS]
    assert (done.exit_code, outcomes(done)) == (0, dict.fromkeys(verdict_fatal.RULES, "passed"))
    last = len(verdict_fatal.STEPS) - 1  # a batch that is refused for what it is ends a transaction only
    assert len(runs.read_text().split()) in (last - 1, last)


def test_more_is_on_its_way_when_the_refusal_of_a_batch_comes() -> None:
    """The clock stands still, and lets one late reply pass at a time."""
    with Broker() as broker, Wire(broker.bootstrap_servers) as wire:
        create(wire, "t")
        broker.clock.freeze()
        verdict_fatal.Endings(broker, (verdict_fatal.BATCH_REFUSED,))
        errors = [produce(wire, "t", b"value").error_code for _ in range(13)]
        for _ in range(5):
            wire.say("Produce", 9, produce_message("t", batch(b"value")))
        for _ in range(5):
            until(lambda: "Turn.pause" in [one["what"] for one in broker.clock.show()["next"]], "a reply is late")
            assert select.select([wire.socket], [], [], 0) == ([], [], [])
            broker.clock.advance(f"{verdict_fatal.LATE_MS}ms")
            errors.append(wire.reply("Produce", 9).responses[0].partition_responses[0].error_code)
        errors.append(produce(wire, "t", b"value").error_code)
    assert errors == [0] * 13 + [Errors.INVALID_RECORD] + [0] * 5


def test_a_program_that_meets_no_fatal_error_is_run_once(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = run("--examination", "fatal", "--listen", "127.0.0.1:0", "--run", f"{sys.executable} {program}")
    assert done.stderr.count("the program ended with exit code 0") == 1
    assert done.stderr.count("not come to") == len(verdict_fatal.STEPS)
    assert run("--examination", "fatal", "--live", "http://127.0.0.1:1").exit_code == 2


def test_a_program_that_a_signal_ended_is_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[object] = []

    def receive(*what: object) -> bool:
        runs.append(what)
        return len(runs) < 2

    monkeypatch.setattr(verdict_examination, "_receive", receive)
    monkeypatch.setattr(verdict_fatal.Endings, "end_met", lambda _: True)
    assert verdict_examination.end_clients("127.0.0.1:0", "program", print) == []
    assert len(runs) == 2


@pytest.mark.parametrize("examination", ["connections", "truncation"])
@pytest.mark.parametrize("listen", ["127.0.0.1", "127.0.0.1:one", "192.0.2.1:0"])
def test_an_address_at_which_nothing_can_listen_is_refused(examination: str, listen: str) -> None:
    done = run("--examination", examination, "--listen", listen, "--run", "true")
    assert done.exit_code == 2
    assert f"ottla: cannot listen at {listen}" in done.stderr.replace("'", "")


ENDS = {
    "Ctrl-C in a terminal": (os.killpg, [signal.SIGINT], 7),
    "SIGTERM": (os.kill, [signal.SIGTERM], -signal.SIGTERM),
    "SIGTERM to the process group": (os.killpg, [signal.SIGTERM], -signal.SIGTERM),
    "Ctrl-C twice, which the program does not hear": (os.kill, [signal.SIGINT, signal.SIGINT], -signal.SIGTERM),
}


@contextmanager
def examining(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Runs the command in a process group of its own, and kills it if it has not ended."""
    command = [sys.executable, "-m", "ottla", "verdict", "--listen", "127.0.0.1:0", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("how", ENDS)
def test_the_report_is_there_though_the_program_is_ended(how: str, tmp_path: Path) -> None:
    send, signals, status = ENDS[how]
    program = tmp_path / "program.py"
    program.write_text(ENDLESS)
    command = f"exec {sys.executable} {program} {tmp_path / 'runs'}"
    with examining("--run", command) as process:
        assert process.stderr is not None
        until((tmp_path / "runs").exists, "the program runs", 60)
        assert "examining" in process.stderr.readline()
        first, *more = signals
        send(process.pid, first)
        if more:
            assert process.stderr.readline() == "ottla: waiting for the program to end; Ctrl-C again terminates it\n"
        for one in more:
            send(process.pid, one)
        report, errors = process.communicate(timeout=60)
    assert f"ottla: the program ended with exit code {status}\n" in errors
    assert re.search("^visitor ", report, re.MULTILINE)  # a client of another test may look for a broker at this port


@contextmanager
def heeding(end: signal.Signals) -> Iterator[None]:
    """Programs that are started meanwhile do not ignore a signal, as these tests may do (`nohup`)."""
    before = signal.signal(end, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(end, before)


def test_a_signal_that_does_not_interrupt_the_wait_for_a_program_ends_it() -> None:
    """As one right before the system call of the wait does not. Here another thread takes it."""
    leave = threading.Event()
    with heeding(signal.SIGHUP), ThreadPoolExecutor(1) as threads:
        threads.submit(leave.wait)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
        try:
            ended = verdict_examination._run("kill -HUP $PPID; exec sleep 60", os.environ, print)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            leave.set()
    assert ended == (-signal.SIGTERM, True)


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_without_a_program_it_examines_until_a_signal_comes_to_its_process_group(end: signal.Signals) -> None:
    with heeding(end), examining("--json") as process:
        assert process.stderr is not None
        address = process.stderr.readline().split()[5].rstrip(":")
        with Wire(address, client_id="visitor") as wire:
            wire.ask("Metadata", 12, m.MetadataRequest(topics=[]))
            assert "Ctrl-C" in process.stderr.readline()
            os.killpg(process.pid, end)
            report, _ = process.communicate(timeout=60)
    (client,) = json.loads(report)
    assert client["client_id"] == "visitor"
    assert process.returncode == 1  # it has not begun with ApiVersions


def test_after_nohup_it_goes_on_where_a_terminal_is_closed() -> None:
    with heeding(signal.SIGHUP):
        assert verdict_examination._ends() == list(verdict_examination.ENDS)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        assert verdict_examination._ends() == [signal.SIGINT, signal.SIGTERM]
