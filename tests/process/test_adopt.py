"""`ottla adopt`: what it says of directories of Kafkas with ZooKeeper, what it refuses, and that crashes lose nothing.

What a broker has afterwards is in tests/world/test_adopted.py.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from ottla.storage.files import OsFiles

from ottla.adopt_command import adopt
from ottla.adoption import zookeeper
from ottla.adoption.catalog import from_zookeeper
from ottla.adoption.findings import MARKER
from ottla.adoption.plan import Given
from ottla.adoption.work import Order, continued, prepared
from ottla.testing import Broker

from ..support.old_directories import DumpedNodes, OldDirectories, committed, read
from ..support.poll import until
from ..support.sources import ROOT
from ..support.wire import Wire

pytestmark = pytest.mark.long

Open = Callable[[str], OldDirectories]
RECORDED: dict[str, Any] = json.loads((ROOT / "tests/oracle/recorded/zookeeper_entities.json").read_text())
KAFKA_CHECKPOINTS = ("recovery-point-offset-checkpoint", "replication-offset-checkpoint")


@pytest.fixture
def old(tmp_path: Path) -> Open:
    return lambda version: OldDirectories(version, tmp_path / version)


def run(*arguments: object, answer: str = "") -> Result:
    return CliRunner().invoke(adopt, [str(one) for one in arguments], input=answer)


def contents(directory: Path) -> dict[str, str]:
    """A digest of each file, by its path."""
    files = [one for one in directory.rglob("*") if one.is_file() and one.name != ".lock"]
    return {str(one.relative_to(directory)): hashlib.sha256(one.read_bytes()).hexdigest() for one in files}


def test_the_plan_is_shown_and_nothing_is_written_before_it_is_agreed_to(old: Open, tmp_path: Path) -> None:
    release = old("0.10.2.2")
    data, to = release.data("clean"), tmp_path / "data"
    before = contents(data)
    for shown in (run(data), run(data, "--in-place", "--dry-run"), run(data, "--to", to, "--dry-run")):
        assert shown.exit_code == 0
    for refused in (run(data, "--in-place", answer="n\n"), run(data, "--to", to, answer="n\n")):
        assert (refused.exit_code, refused.output.splitlines()[-1]) == (2, "nothing was written")
    assert not (data / ".lock").exists()
    assert (contents(data), to.exists()) == (before, False)
    made = run(data, "--to", to, answer="y\n")
    assert made.exit_code == 0, made.output
    assert contents(data) == before
    lines = made.output.splitlines()
    assert re.fullmatch(r"cluster \S{22}, files of Kafka 0\.10 or later", lines[0])
    assert lines[1] == f"  {data}  broker 1  11 partitions  stopped cleanly"
    assert lines[2] == "ottla will find (topics and configurations from the directories)"
    for line in (
        "             3 groups",
        "             4 committed offsets",
        "  older  partitions 1  formats 0",
        "  packed  partitions 1  formats 1",
        "  kept: cleanup.policy=compact, because the cleaner's checkpoint has it",
        "  write 4 committed offsets again, so that their retention begins now",
        f"  start it with: ottla serve log.dirs={to}",
    ):
        assert line in lines, line
    assert lines[-1].endswith("done")


def test_what_is_agreed_to_is_served(old: Open, tmp_path: Path) -> None:
    """In place, after a kill; the old `meta.properties` and the old committed offsets stay."""
    release = old("2.8.2")
    release.data("killed").rename(tmp_path / "data")
    command = [sys.executable, "-m", "ottla", "adopt", tmp_path / "data", "--in-place", "--yes", "--json"]
    command += ["--configs", release.described]
    made = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120, check=False)
    assert (made.returncode, made.stderr) == (0, "")
    report = json.loads(made.stdout)
    assert (report["made"], report["lost"], report["kafka"]) == (True, [], "2.4 to 3.9")
    kept = {one.name for one in (tmp_path / "data").iterdir() if one.name.endswith(("-stray", "before-adoption"))}
    assert {re.sub(r"\.[0-9a-f]{32}", "", name) for name in kept} == {
        *("meta.properties.before-adoption", "__consumer_offsets-0-stray", "__consumer_offsets-2-stray")
    }
    with Broker(directory=tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        for name, rows in release.records("killed").items():
            topic, _, partition = name.rpartition("-")
            assert read(wire, topic, int(partition)) == rows, name
        known = release.offsets("killed")["classic"]
        assert until(lambda: committed(wire, "classic", ["plain"]), "the group is loaded") == known


@pytest.mark.parametrize("damage", ["torn", "flipped", "nonsense"])
def test_what_a_crash_damaged_is_said_before_it_is_cut_off(damage: str, old: Open, tmp_path: Path) -> None:
    release = old("0.8.2.2")
    log = max((release.data("killed") / "plain-0").glob("*.log"))
    data = log.read_bytes()
    torn = {"torn": data[:-3], "flipped": data[:-1] + b"\xff", "nonsense": data + b"\0\1" * 50}[damage]
    log.write_bytes(torn)
    rows = release.records("killed")["plain-0"][: None if damage == "nonsense" else -1]
    last = len(data) if damage == "nonsense" else len(data) - 32
    words = f"plain-0: {len(torn) - last} bytes from offset {len(rows)} on, which are damaged"
    arguments = (release.data("killed"), "--to", tmp_path / "data", "--json")
    planned, made = run(*arguments, "--dry-run"), run(*arguments, "--yes")
    for one in (planned, made):
        assert (one.exit_code, json.loads(one.output)["lost"]) == (1, [words])
    with Broker(directory=tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        assert read(wire, "plain", 0) == rows


@pytest.mark.parametrize("name", ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint"])
def test_a_checkpoint_that_is_damaged_is_named(name: str, old: Open, tmp_path: Path) -> None:
    release = old("3.9.1")
    checkpoint = release.data("killed") / name
    checkpoint.write_text("0\n1\n")
    planned = run(release.data("killed"), "--to", tmp_path / "data", "--json", "--dry-run")
    (said,) = [one for one in json.loads(planned.output)["notes"] if one.startswith(f"{checkpoint}: ")]
    assert (planned.exit_code, said.endswith("its offsets are taken from the logs")) == (0, True)


@pytest.mark.parametrize("file", ["*.log", "*.timeindex", "leader-epoch-checkpoint"])
def test_a_file_that_cannot_be_read_is_named_and_nothing_is_made(file: str, old: Open, tmp_path: Path) -> None:
    release = old("3.9.1")
    path = min((release.data("clean") / "plain-0").glob(file))
    path.unlink()
    path.symlink_to(path.name)  # a loop
    refused = run(release.data("clean"), "--to", tmp_path / "data", "--yes")
    assert (refused.exit_code, str(path) in refused.output) == (5, True), refused.output
    assert not (tmp_path / "data").exists()


# several directories


def split(release: OldDirectories, names: list[str]) -> tuple[Path, Path]:
    """Moves partitions into a second log directory of the same broker."""
    first, second = release.data("clean"), release.path / "second"
    second.mkdir()
    for name in names:
        (first / name).rename(second / name)
    (first / "meta.properties").write_text("version=0\nbroker.id=1\n")  # Kafka 0.8 has none
    for name in ("meta.properties", ".kafka_cleanshutdown"):
        shutil.copy(first / name, second / name)
    keys = {" ".join(name.rsplit("-", 1)) for name in names}
    for name in KAFKA_CHECKPOINTS:
        lines = (first / name).read_text().splitlines()[2:]
        for path, of_second in ((first, False), (second, True)):
            kept = [one for one in lines if (one.rpartition(" ")[0] in keys) == of_second]
            (path / name).write_text("\n".join(["0", str(len(kept)), *kept, ""]))
    return first, second


def test_two_log_directories_of_a_broker_are_changed_in_place(old: Open) -> None:
    release = old("3.9.1")
    first, second = split(release, ["plain-1", "__consumer_offsets-2"])
    assert run(first, second, "--in-place", "--yes").exit_code == 0
    with Broker({"log.dirs": f"{first},{second}"}) as broker, Wire(broker.bootstrap_servers) as wire:
        assert read(wire, "plain", 0) == release.records("clean")["plain-0"]
        assert read(wire, "plain", 1) == release.records("clean")["plain-1"]
        known = release.offsets("clean")["classic"]
        assert until(lambda: committed(wire, "classic", ["plain"]), "the group is loaded") == known


def test_of_the_replicas_of_several_brokers_the_leaders_is_taken(old: Open, tmp_path: Path) -> None:
    """Broker 2 has less of `plain-0`, and leads it by what ZooKeeper said; without that, the longest log is taken."""
    release = old("1.1.1")
    second = tmp_path / "second"
    (second / "plain-0").mkdir(parents=True)
    segment = "00000000000000000000"
    for suffix in (".log", ".index", ".timeindex"):
        shutil.copy(release.data("clean") / "plain-0" / f"{segment}{suffix}", second / "plain-0")
    (second / "meta.properties").write_text("version=0\nbroker.id=2\n")
    (second / ".kafka_cleanshutdown").touch()
    described = release.described.read_text()
    state = "Topic: plain\tPartition: 0\tLeader: {0}\tReplicas: {1}\tIsr: {0}"
    known = tmp_path / "described"
    known.write_text(described.replace(state.format(1, 1), state.format(2, "1,2")))
    assert known.read_text() != described
    ends = {}
    for name, arguments in (("known", ("--configs", known)), ("unknown", ())):
        to = tmp_path / name
        made = run(release.data("clean"), second, "--to", to / "data", "--yes", *arguments)
        assert made.exit_code == 0, made.output
        with Broker(directory=to) as broker, Wire(broker.bootstrap_servers) as wire:
            ends[name] = len(read(wire, "plain", 0))
    rows = release.records("clean")["plain-0"]
    assert (ends["unknown"], 0 < ends["known"] < len(rows)) == (len(rows), True)
    refused = run(release.data("clean"), second, "--in-place", "--yes")
    assert (refused.exit_code, "of several brokers: name --to" in refused.output) == (2, True)


def test_closed_segments_are_linked_where_that_is_wanted(old: Open, tmp_path: Path) -> None:
    release = old("1.1.1")
    assert run(release.data("clean"), "--to", tmp_path / "data", "--yes", "--link").exit_code == 0
    logs = sorted((tmp_path / "data" / "plain-0").glob("*.log"))
    assert [os.stat(one).st_nlink for one in logs] == [2, 1, 1]
    with Broker(directory=tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        assert read(wire, "plain", 0) == release.records("clean")["plain-0"]


# refusals


@pytest.fixture
def locked() -> Iterator[Callable[[Path], None]]:
    """Lets another process hold the lock of a directory, as a broker does."""
    held: list[subprocess.Popen[bytes]] = []
    code = (
        "import fcntl,sys; f=open(sys.argv[1],'w'); fcntl.lockf(f,fcntl.LOCK_EX); print(flush=True); sys.stdin.read()"
    )

    def lock(path: Path) -> None:
        command = [sys.executable, "-c", code, str(path / ".lock")]
        held.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        assert held[-1].stdout is not None
        held[-1].stdout.readline()

    yield lock
    for one in held:
        one.communicate()


def test_refusals_name_what_is_wrong_and_the_command_that_is_meant(
    old: Open, tmp_path: Path, locked: Callable[[Path], None]
) -> None:
    data = old("3.9.1").data("clean")
    full, empty, other = tmp_path / "full", tmp_path / "empty", tmp_path / "other"
    for one in (full, empty, other):
        one.mkdir()
    (full / "file").touch()

    def refused(*arguments: object) -> tuple[int, str]:
        made = run(*arguments)
        return made.exit_code, made.output

    inside = data / "out"
    assert refused(data, "--to", full) == (2, f"ottla: {full} is not an empty directory\n")
    assert refused(data, "--to", inside) == (2, f"ottla: {inside} and {data} lie within each other\n")
    assert refused(data, "--to", empty, "--in-place") == (2, "ottla: --to and --in-place exclude each other\n")
    assert refused(data, "--in-place", "--json") == (2, "ottla: --json needs --yes or --dry-run\n")
    assert refused(data, "--in-place", "--link") == (2, "ottla: --link needs --to\n")
    assert refused(data, "-c", full / "file") == (
        2,
        "ottla: -c needs --zookeeper, which has the passwords that it opens\n",
    )
    assert refused(data, "-c", full / "file", "--zookeeper", "127.0.0.1:1") == (
        2,
        f"ottla: {full / 'file'}: there is no password.encoder.secret, and no zookeeper.ssl.*\n",
    )
    key = "zookeeper.ssl.client.enable"
    assert refused(data, "-o", f"{key}=true") == (2, "ottla: -o needs --zookeeper\n")
    assert refused(data, "--zookeeper", "127.0.0.1:1", "-o", f"{key}=perhaps") == (
        2,
        f"ottla: command line: Invalid value perhaps for configuration {key}: "
        "Expected value to be either true or false\n",
    )
    assert refused(empty) == (5, f"ottla: {empty} has no partition\n")
    code, words = refused(data, "--configs", full / "file")
    assert (code, "kafka-topics --describe" in words) == (2, True)
    (other / "meta.properties").write_text("version=0\nbroker.id=2\ncluster.id=another\n")
    code, words = refused(data, other)
    assert (code, f"{other} belongs to cluster another" in words) == (2, True)
    (other / "meta.properties").write_text("version=1\nnode.id=2\ncluster.id=another\n")
    assert refused(other)[1].endswith("has version 1, which Kafka writes with KRaft: use `ottla takeover`\n")
    with Broker(directory=tmp_path / "own"):
        pass
    own = tmp_path / "own" / "data"
    assert refused(own) == (2, f"ottla: {own} is ottla's already: start `ottla serve log.dirs={own}`\n")
    locked(data)
    assert refused(data) == (4, f"ottla: {data} is in use by another process; stop it first\n")


def test_a_directory_of_before_an_adoption_is_not_served(old: Open) -> None:
    data = old("3.9.1").data("clean")
    command = [sys.executable, "-m", "ottla", "serve", f"log.dirs={data}", "listeners=PLAINTEXT://127.0.0.1:0"]
    made = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (made.returncode, "ottla adopt" in made.stderr) == (5, True), made.stderr


# crashes


class Crash(BaseException):
    """The process ended."""


class CrashingFiles(OsFiles):
    """Ends the process before one of its changes; nothing changes afterwards."""

    def __init__(self, left: int) -> None:
        super().__init__()
        self.left = left

    def _change(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Crash

    def make_directory(self, path: str) -> None:
        self._change()
        super().make_directory(path)

    def rename(self, old: str, new: str) -> None:
        self._change()
        super().rename(old, new)

    def remove(self, path: str) -> None:
        self._change()
        super().remove(path)

    def remove_tree(self, path: str) -> None:
        self._change()
        super().remove_tree(path)

    def replace(self, path: str, data: bytes, durable: bool = True) -> None:
        self._change()
        super().replace(path, data, durable)


def carry_out(paths: tuple[Path, ...], to: Path | None, files: OsFiles | None = None) -> None:
    """As the command does."""
    named = tuple(map(str, paths))
    if continued(named, None if to is None else str(to), files):
        return
    with prepared(Order(named, None if to is None else str(to), Given(new_cluster_id="new"))) as adoption:
        adoption.carry_out(files, sync=lambda: None)


def shape(*directories: Path) -> dict[str, Any]:
    """What a run makes, but for ids and times: names of files, and the bytes of records."""
    found: dict[str, Any] = {}
    for number, directory in enumerate(directories):
        for name, digest in contents(directory).items():
            is_same = name.endswith(".log") and not name.startswith(("__cluster_metadata", "__consumer_offsets"))
            found[re.sub(r"[0-9a-f]{32}", "ID", f"{number}/{name}")] = digest if is_same else ""
    return found


@pytest.mark.parametrize("place", ["of its own", "in place"])
def test_a_crash_at_any_step_loses_nothing(place: str, old: Open, tmp_path: Path) -> None:
    """The next run goes on or begins again; before the point of no return the directories are as they were."""
    release = old("0.8.2.2")
    for name in ("packed-0", "kept-0", "plain-0", *(f"__consumer_offsets-{n}" for n in (0, 1, 3))):
        shutil.rmtree(release.data("clean") / name)
    for name in KAFKA_CHECKPOINTS:
        (release.data("clean") / name).write_text("0\n0\n")
    sources = split(release, ["__consumer_offsets-2"])
    before = [contents(one) for one in sources]

    def fresh(name: str) -> tuple[tuple[Path, ...], Path | None]:
        if place == "of its own":
            return sources, tmp_path / name / "data"
        copies = tuple(tmp_path / name / one.name for one in sources)
        for one, copy in zip(sources, copies, strict=True):
            shutil.copytree(one, copy)
        return copies, None

    paths, to = fresh("undisturbed")
    carry_out(paths, to)
    wanted = shape(*([to] if to else paths))
    for step in range(200):
        paths, to = fresh(str(step))
        try:
            carry_out(paths, to, CrashingFiles(step))
        except Crash:
            begun = any((one / "adopting" / "ready").exists() for one in paths)
            swapped = any("version=1" in (one / "meta.properties").read_text() for one in paths)
            if not begun and not swapped:
                left = [{n: d for n, d in contents(one).items() if not n.startswith("adopting/")} for one in paths]
                assert left == before
            with open(paths[0] / ".lock", "a") as file:  # the process that ended holds no lock
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            carry_out(paths, to)
            assert shape(*([to] if to else paths)) == wanted, step
        else:
            break
    assert 10 < step < 199, "every step was met"
    assert [contents(one) for one in sources] == before


def test_a_run_that_only_finishes_says_so_in_the_form_that_was_asked_for(old: Open, tmp_path: Path) -> None:
    command = (old("0.10.2.2").data("clean"), "--to", tmp_path / "data", "--yes")
    assert run(*command).exit_code == 0
    shown = []
    for as_json in ((), ("--json",)):
        (tmp_path / "data" / MARKER).mkdir()  # a crash before the last step
        shown.append(run(*command, *as_json).output)
    words, view = shown
    assert words == f"finished what was begun in {tmp_path / 'data'}: it had only to be put in place\n"
    assert json.loads(view) == {"made": True, "finished": [str(tmp_path / "data")]}


@pytest.mark.parametrize("key", ["password.encoder.secret", "password.encoder.old.secret"])
def test_the_old_brokers_file_opens_passwords(
    key: str, old: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = old("3.9.1").zookeeper | {path: value.encode() for path, value in RECORDED["3.9.1"]["nodes"].items()}
    monkeypatch.setattr(zookeeper, "read_catalog", lambda connect: from_zookeeper(DumpedNodes(nodes)))
    file, data = tmp_path / "server.properties", tmp_path / "3.9.1" / "clean"
    file.write_text(f"broker.id=1\n{key}=encoder\n")
    without = run(data, "--zookeeper", "localhost:2181")
    made = run(data, "--zookeeper", "localhost:2181", "-c", file)
    said = "broker 1: listener.name.other.ssl.key.password: it is encrypted"
    assert (made.exit_code, said in without.output, said in made.output) == (without.exit_code, True, False)
    assert "hidden" not in made.output
