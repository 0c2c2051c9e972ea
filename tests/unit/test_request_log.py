"""The request log: what is masked, who may read it, how large it becomes, and what is not logged."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ottla.broker import line_log
from ottla.broker.apis import apis
from ottla.broker.clock import VirtualSchedule
from ottla.broker.config import secrets
from ottla.broker.config.secrets import masked
from ottla.broker.line_log import LineLog
from ottla.broker.log_file import LogFile
from ottla.broker.net.context import Context
from ottla.broker.net.request_log import RequestLog
from ottla.broker.peer import Peer
from ottla.protocol import messages as m
from ottla.protocol.codec import as_plain

from ..support.machine import VirtualMachine

SECRET = "t0p-s3cret"


def context(api: str = "Metadata", client_id: str = "c") -> Context:
    (found,) = (one for one in apis(False).values() if one.name == api)
    broker: Any = SimpleNamespace(config=SimpleNamespace(node_id=1))
    return Context(broker, found, found.high, 7, client_id, Peer("PLAINTEXT", "127.0.0.1:5"))


def log(
    path: Path, max_bytes: int = -1, backups: int = 3, apis: list[str] | None = None, clients: list[str] | None = None
) -> RequestLog:
    schedule = VirtualSchedule()
    lines = LineLog("request log", LogFile(str(path), max_bytes, backups), VirtualMachine(schedule))
    return RequestLog(lines, schedule, apis or [], clients or [])


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _alter(name: str) -> Any:
    i = m.IncrementalAlterConfigsRequest
    return i(
        resources=[
            i.AlterConfigsResource(
                resource_type=4, resource_name="1", configs=[i.AlterableConfig(name=name, value=SECRET)]
            )
        ]
    )


def _described(name: str) -> Any:
    d = m.DescribeConfigsResponse
    synonym = d.DescribeConfigsSynonym(name=name, value=SECRET)
    found = d.DescribeConfigsResourceResult(name=name, value=SECRET, synonyms=[synonym])
    return d(results=[d.DescribeConfigsResult(configs=[found])])


def _old_alter(name: str) -> Any:
    a = m.AlterConfigsRequest
    return a(
        resources=[
            a.AlterConfigsResource(
                resource_type=4, resource_name="1", configs=[a.AlterableConfig(name=name, value=SECRET)]
            )
        ]
    )


def _create(name: str) -> Any:
    c = m.CreateTopicsRequest
    return c(topics=[c.CreatableTopic(name="t", configs=[c.CreatableTopicConfig(name=name, value=SECRET)])])


def _scram() -> Any:
    a = m.AlterUserScramCredentialsRequest
    upsertion = a.ScramCredentialUpsertion(name="u", salt=SECRET.encode(), salted_password=SECRET.encode())
    return a(upsertions=[upsertion])


@pytest.mark.parametrize(
    "message",
    [
        *(
            make(name)
            for make in (_alter, _old_alter, _described, _create)
            for name in ("ssl.keystore.password", "sasl.jaas.config")
        ),
        _alter("listener.name.external.ssl.key.password"),
        _alter("some.plugins.password"),
        _scram(),
        m.SaslAuthenticateRequest(auth_bytes=SECRET.encode()),
        m.CreateDelegationTokenResponse(hmac=SECRET.encode()),
        m.ExpireDelegationTokenRequest(hmac=SECRET.encode()),
    ],
)
def test_what_is_secret_is_masked(message: Any) -> None:
    text = json.dumps(masked(as_plain(message)))
    assert SECRET not in text
    assert SECRET.encode().hex() not in text
    assert secrets.MASK in text


def test_what_is_no_secret_is_shown() -> None:
    assert SECRET in json.dumps(masked(as_plain(_create("cleanup.policy"))))


def test_the_file_is_for_its_owner_alone_also_one_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("")
    path.chmod(0o644)
    log(path).lines.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    log(tmp_path / "new").lines.close()
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600


def test_only_the_apis_and_clients_that_are_named_are_logged(tmp_path: Path) -> None:
    one = log(tmp_path / "log", apis=["Metadata"], clients=["app-*", "other"])
    for api, client in (("Metadata", "app-1"), ("Metadata", "other"), ("Metadata", "app"), ("ApiVersions", "app-1")):
        one.request(context(api, client), m.MetadataRequest())
    one.lines.close()
    assert [line["client_id"] for line in lines(tmp_path / "log")] == ["app-1", "other"]


def test_files_are_replaced_when_they_are_full_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / "log"
    one = log(path, max_bytes=4096, backups=2)
    for number in range(100):
        one.request(context(client_id=str(number)), m.MetadataRequest())
    one.lines.close()
    names = sorted(os.listdir(tmp_path))
    assert names == ["log", "log.1", "log.2"]
    assert all((tmp_path / name).stat().st_size <= 4096 for name in names)
    kept = [int(line["client_id"]) for name in ("log.2", "log.1", "log") for line in lines(tmp_path / name)]
    assert kept == list(range(kept[0], 100)), "whole lines, in order, up to the last"
    assert stat.S_IMODE((tmp_path / "log.1").stat().st_mode) == 0o600


@pytest.mark.parametrize("backups", [0, 1])
def test_a_full_file_that_someone_has_moved_is_followed_by_a_new_one(tmp_path: Path, backups: int) -> None:
    """As `logrotate` moves it, or who looks at it."""
    file = LogFile(str(tmp_path / "log"), 10, backups)
    file.write([b"12345678\n"])
    os.rename(tmp_path / "log", tmp_path / "moved")
    file.write([b"next\n"])
    file.close()
    assert {one.name: one.read_text() for one in tmp_path.iterdir()} == {"moved": "12345678\n", "log": "next\n"}


def test_a_new_file_that_cannot_be_created_at_once_is_created_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = LogFile(str(tmp_path / "log"), 10, 2)
    file.write([b"12345678\n"])
    with monkeypatch.context() as without:
        without.setattr(os, "open", lambda *_: (_ for _ in ()).throw(OSError(errno.EMFILE, "no descriptors")))
        with pytest.raises(OSError, match="no descriptors"):
            file.write([b"lost\n"])
    file.write([b"next\n"])
    file.close()
    assert {one.name: one.read_text() for one in tmp_path.iterdir()} == {"log.1": "12345678\n", "log": "next\n"}


def test_without_backups_the_full_file_goes(tmp_path: Path) -> None:
    one = log(tmp_path / "log", max_bytes=4096, backups=0)
    for _ in range(100):
        one.request(context(), m.MetadataRequest())
    one.lines.close()
    assert os.listdir(tmp_path) == ["log"]
    assert (tmp_path / "log").stat().st_size <= 4096


def test_lines_are_written_in_one_go_off_the_loop(tmp_path: Path) -> None:
    one = log(tmp_path / "log")
    written: list[int] = []
    write = one.lines.file.write

    def counted(lines: list[bytes]) -> None:
        written.append(len(lines))
        write(lines)

    one.lines.file.write = counted  # type: ignore[method-assign]
    for _ in range(50):
        one.request(context(), m.MetadataRequest())
    assert (tmp_path / "log").stat().st_size == 0
    one.schedule.advance(1)  # type: ignore[attr-defined]
    assert written == [50]
    one.lines.close()


def test_a_disk_that_is_too_slow_costs_lines_and_not_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_log, "PENDING_BYTES_MAX", 4096)
    one = log(tmp_path / "log")
    for _ in range(100):
        one.request(context(), m.MetadataRequest())
    assert one.lines.dropped > 0
    one.lines.close()
    assert len(lines(tmp_path / "log")) + one.lines.dropped == 100


def test_a_disk_that_fails_costs_lines_and_not_the_broker(tmp_path: Path) -> None:
    one = log(tmp_path / "log")

    def full(lines: list[bytes]) -> None:
        raise OSError(28, "No space left on device")

    write, one.lines.file.write = one.lines.file.write, full  # type: ignore[method-assign]
    one.request(context(), m.MetadataRequest())
    one.schedule.advance(1)  # type: ignore[attr-defined]
    assert one.lines.dropped == 1
    one.lines.file.write = write  # type: ignore[method-assign]
    one.request(context(), m.MetadataRequest())
    one.schedule.advance(1)  # type: ignore[attr-defined]
    one.lines.close()
    assert len(lines(tmp_path / "log")) == 1


def test_a_pipe_without_a_reader_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="No such device"):
        LogFile(str(tmp_path / "pipe"), -1, 0)
