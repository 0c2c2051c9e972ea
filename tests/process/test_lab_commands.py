"""The commands for a running broker: tables, JSON, pages, refreshing, and exit codes."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from ottla.protocol import messages as m

from ottla import certs, lab_client, lab_output
from ottla.cli import main
from ottla.lab_client import Lab, LabRefused, LabUnreachable
from ottla.testing import Broker

from ..support.ask import create
from ..support.wire import Wire

TOKEN = "a-token"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"ottla.lab.token": TOKEN}) as broker, Wire(broker.bootstrap_servers) as wire:
        for name in ("a", "b", "c"):
            create(wire, name, 2)
        yield broker


@pytest.fixture
def lab(broker: Broker) -> Lab:
    return Lab(broker.lab_url, TOKEN)


def run(broker: Broker, *arguments: str, token: str = TOKEN) -> Result:
    """Runs a command; `--lab` goes after its name."""
    environment = {"OTTLA_LAB": broker.lab_url, "OTTLA_LAB_TOKEN": token}
    return CliRunner().invoke(main, arguments, env=environment)


def test_a_command_prints_a_table_or_json(broker: Broker) -> None:
    held = run(broker, "hold", "-p", "1", "a")
    assert [line.split()[:3] for line in held.stdout.splitlines()] == [
        ["topic", "partition", "log_start_offset"],
        ["a", "1", "0"],
    ]
    released = json.loads(run(broker, "release", "--json", "-p", "1", "a").stdout)
    assert [(one["topic"], one["policy"]) for one in released] == [("a", "immediate")]
    found = json.loads(run(broker, "topics", "--json", "b", "a").stdout)
    assert [one["topic"] for one in found] == ["a", "b"]


def test_records_are_shown_in_as_many_pages_as_it_takes(
    broker: Broker, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        lab.post("records/c", key="k", value=f"{number}\x1b", partition=1, headers={"by": "hand"})
    shown = run(broker, "records", "-p", "1", "--offset", "1", "c").stdout
    assert [line.split()[0] for line in shown.splitlines()] == ["offset", "1", "2"]
    assert "\x1b" not in shown
    assert "by=hand" in shown
    get = Lab.get

    def cut(self: Lab, path: str, **query: object) -> object:
        """A broker whose search ends after each record."""
        page = get(self, path, **{**query, "limit": 1})
        return {**page, "is_end": False} if page["records"] else page

    monkeypatch.setattr(Lab, "get", cut)
    found = json.loads(run(broker, "records", "--json", "-p", "1", "-n", "2", "c").stdout)
    assert [one["offset"] for one in found] == [0, 1]


def test_clients_are_shown_with_what_they_asked_for(broker: Broker) -> None:
    with Wire(broker.bootstrap_servers, client_id="app") as wire:
        wire.ask("Metadata", 12, m.MetadataRequest())
        wire.ask("Heartbeat", 4, m.HeartbeatRequest(group_id="g", member_id="m"))
        shown = json.loads(run(broker, "clients", "--json").stdout)
        (found,) = [one for one in shown if one["client_id"] == "app"]
        assert found["requests"] == {"Metadata v12": 1, "Heartbeat v4": 1}
        assert (found["last_request"], found["groups"], found["connected"]) == ("Heartbeat v4", {"g": "m"}, True)
        row = next(line for line in run(broker, "clients").stdout.splitlines() if line.startswith(found["id"]))
        assert row.split()[1:] == ["app", *row.split()[2:5], "2", "Heartbeat", "v4", "g", "-"]
        assert f"id: {found['id']}" in run(broker, "clients", found["id"]).stdout
    assert run(broker, "clients", "127.0.0.1:1").exit_code == 1


@pytest.mark.long
def test_every_route_is_a_command_by_its_name(broker: Broker) -> None:
    listed = run(broker, "lab", "routes").stdout
    assert "hold" in listed
    assert "/v1/share/{group}/{topic}/{partition}" in listed
    called = run(broker, "lab", "call", "policy", "topic=a", "policy=bytes=100", "partition=0", "--json")
    assert json.loads(called.stdout)["partitions"][0]["policy"] == "bytes=100"
    assert "topic: c\n" in run(broker, "lab", "call", "topic", "topic=c").stdout
    assert "next: b\n" in run(broker, "lab", "call", "topics", "limit=1", "after=a").stdout
    assert run(broker, "lab", "call", "retention").stdout == "done: true\n"
    run(broker, "lab", "call", "start_verdict")
    with Wire(broker.bootstrap_servers) as wire:
        wire.ask("ApiVersions", 0, m.ApiVersionsRequest())
    said = run(broker, "lab", "call", "stop_verdict").stdout
    assert " values, which --json shows" in said
    assert max(map(len, said.splitlines())) < 200


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["hold", "absent"], 1, "ottla: topic absent does not exist"),
        (["topics", "a", "absent"], 1, "ottla: topic absent does not exist"),
        (["policy", "held", "--partition", "1"], 1, "ottla: partition: needs the name of its topic"),
        (["policy", "slow"], 1, "ottla: policy: 'slow' is not a policy; use immediate, held"),
        (["lab", "call", "isr_size", "size=1", "partition=0"], 1, "ottla: partition: needs the name of its topic"),
        (["lab", "call", "topic"], 1, "ottla: topic: is missing"),
        (["lab", "call", "step", "batches=x"], 1, "ottla: batches: must be a number, found 'x'"),
        (["lab", "call", "retention", "topik=x"], 1, "ottla: topik: unknown key (known: none)"),
        (["lab", "call", "nothing"], 2, "the broker has no route nothing"),
        (["lab", "call", "hold", "topic"], 2, "topic is not KEY=VALUE"),
        (["lab", "call", "hold", "topic={"], 2, "the value of topic is not valid YAML"),
        (["topics", "--lab", "http://127.0.0.1:1"], 3, "cannot reach the lab at http://127.0.0.1:1"),
        (["topics", "--lab", "nonsense"], 3, "cannot reach the lab at nonsense"),
    ],
)
def test_what_fails_has_its_exit_code(broker: Broker, arguments: list[str], code: int, words: str) -> None:
    found = run(broker, *arguments)
    assert found.exit_code == code, found.output
    assert words in found.stderr


def test_a_wrong_token_is_refused(broker: Broker) -> None:
    found = run(broker, "topics", token="wrong")
    assert found.exit_code == 1
    assert "the lab wants the header" in found.stderr
    assert "the variable OTTLA_LAB_TOKEN gives it" in found.stderr


def test_a_watched_command_asks_again_until_it_is_interrupted(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    naps: list[float] = []

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", sleep)
    found = run(broker, "topics", "--watch", "--json", "a")
    assert found.exit_code == 0
    assert [one["topic"] for line in found.stdout.splitlines() for one in json.loads(line)] == ["a", "a", "a"]
    assert naps == [lab_output.REFRESH_S] * 3


def test_lists_come_in_pages(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab_client, "PAGE", 1)
    assert [one["topic"] for one in lab.every("topics", "topics")] == ["a", "b", "c"]


def test_the_client_says_what_was_refused(lab: Lab, broker: Broker) -> None:
    with pytest.raises(LabRefused, match="must be a string") as refused:
        lab.post("hold", topic=1)
    assert (refused.value.status, refused.value.key) == (400, "topic")
    assert lab.get("/metrics").startswith("# HELP")
    with pytest.raises(LabUnreachable):
        Lab(broker.lab_url.replace("http:", "https:"), TOKEN).get("state")


class Proxy:
    """A proxy with TLS before a lab, as far as the client can see: it answers everything."""

    def __init__(self, folder: Path) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.pem")
        self.server = HTTPServer(("127.0.0.1", 0), Answering)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class Answering(BaseHTTPRequestHandler):
    def do_GET(self) -> None:  # the name that http.server calls
        body = json.dumps({"authorization": self.headers["Authorization"]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


def test_the_client_speaks_tls_to_who_is_trusted_and_sends_the_token_to_no_one_else(tmp_path: Path) -> None:
    certs.make(tmp_path, certs.HOSTS, ("client",), "changeit")
    proxy = Proxy(tmp_path)
    try:
        url = f"https://localhost:{proxy.server.server_port}"
        assert Lab(url, TOKEN, ca_file=str(tmp_path / "ca.crt")).get("state") == {"authorization": f"Bearer {TOKEN}"}
        with pytest.raises(LabUnreachable, match="certificate verify failed"):
            Lab(url, TOKEN).get("state")
    finally:
        proxy.close()
