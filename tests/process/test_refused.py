"""What keeps `ottla serve` from starting: one sentence on standard error, an exit code that says what kind of trouble
it is, no traceback.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
FREE = "listeners=PLAINTEXT://127.0.0.1:0"
SEED = "topics:\n  - name: t\n"


def serve(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("KAFKA_")}
    command = [sys.executable, "-m", "ottla", "serve", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env=environment, cwd=folder
    )


def refused(done: subprocess.CompletedProcess[str], code: int, words: str) -> None:
    assert "Traceback" not in done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("ottla: ")
    assert words in lines[0]
    assert done.returncode == code


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([FREE, "ottla.lab.open=true"], "set ottla.lab.token too"),
        (["listeners=PLAINTEXT://127.0.0.1:99999"], "the port of PLAINTEXT://127.0.0.1:99999 is greater than 65535"),
        ([FREE, "advertised.listeners=PLAINTEXT://h:99999"], "the port of PLAINTEXT://h:99999 is greater than 65535"),
        ([FREE, "log.dirs="], "Configuration 'log.dirs' must not be empty"),
        ([FREE, "ottla.high.watermark=nonsense"], "ottla.high.watermark: 'nonsense' is not a policy"),
        ([FREE, "offsets.topic.compression.codec=9"], "Unknown compression type id: 9"),
        ([FREE, "group.consumer.assignors=no_such_module:assign"], "no_such_module"),
        ([FREE, "authorizer.class.name=no.such.Authorizer"], "Kafka's org.apache.kafka.metadata.authorizer"),
        ([FREE, "super.users=admin"], "expected a string in format principalType:principalName but got admin"),
        ([FREE, "ottla.request.log=."], "cannot write the file .: Is a directory"),
        ([FREE, "ottla.seed.file=missing.yaml"], "missing.yaml: No such file or directory"),
        ([FREE, "ottla.seed.file=."], ".: Is a directory"),
        ([FREE, "ottla.seed.file=latin.yaml"], "latin.yaml: the file is not valid YAML"),
        ([FREE, "ottla.seed.file=broken.yaml"], "broken.yaml: the file is not valid YAML"),
        ([FREE, "ottla.seed.file=list.yaml"], "list.yaml:1: not a valid seed file: the file must be a mapping"),
        ([FREE, "ottla.seed.file=typed.yaml"], "topics[0].partitions must be a number, found 'three'"),
        ([FREE, "ottla.seed.file=beyond.yaml"], "topics[0].records[0].partition is 5, but the topic has 2"),
        ([FREE, "ottla.seed.file=config.yaml"], "config.yaml: topic t: "),
        (["--lab=nonsense", FREE], "Invalid value nonsense for configuration ottla.lab.port"),
        (["-c", "missing.properties"], "missing.properties: No such file or directory"),
        (["-c", "."], ".: Is a directory"),
        (["-c", "escape.properties"], "escape.properties, line 2: "),
        (["-c", "zero.properties"], "zero.properties, line 1: log.dirs: a path must not contain the character NUL"),
        (["nonsense"], "'nonsense' is not of the form key=value"),
    ],
    ids=lambda value: "_".join(value).replace("/", "")[:60] if isinstance(value, list) else "",
)
def test_a_configuration_that_cannot_be_is_refused_in_a_sentence(
    tmp_path: Path, arguments: list[str], words: str
) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"topics:\xe9")
    (tmp_path / "broken.yaml").write_text("topics: [")
    (tmp_path / "list.yaml").write_text("- 1\n")
    (tmp_path / "typed.yaml").write_text(f"{SEED}    partitions: three\n")
    (tmp_path / "beyond.yaml").write_text(f"{SEED}    partitions: 2\n    records: [{{partition: 5}}]\n")
    (tmp_path / "config.yaml").write_text(f"{SEED}    configs: {{retention.ms: soon}}\n")
    (tmp_path / "escape.properties").write_text("node.id=1\nlog.dirs=\\u00zz\n")
    (tmp_path / "zero.properties").write_text("log.dirs=a\\u0000b\n")
    refused(serve(tmp_path, *arguments), 2, words)
    if "config.yaml" not in words:
        assert not (tmp_path / "data").exists(), "nothing is opened before everything is checked"


def test_a_seed_file_of_a_hundred_thousand_brackets_is_refused(tmp_path: Path) -> None:
    (tmp_path / "deep.yaml").write_text("[" * 100_000)
    refused(serve(tmp_path, FREE, "ottla.seed.file=deep.yaml"), 2, "deep.yaml: the file is not valid YAML")


def test_ports_that_are_taken_are_named_and_nothing_is_opened(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused(serve(tmp_path, f"--lab={port}", FREE), 3, f"cannot listen on the lab's port {port}")
        refused(
            serve(tmp_path, f"listeners=PLAINTEXT://127.0.0.1:{port}"),
            3,
            f"cannot listen on PLAINTEXT://127.0.0.1:{port}",
        )
    refused(serve(tmp_path, f"listeners=PLAINTEXT://{'a' * 70}.:0"), 3, "cannot listen on")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("arguments", [["--lab", FREE, "ottla.lab.port=0"], ["--lab=0", FREE], ["--lab", "0", FREE]])
def test_the_lab_takes_its_own_port_and_no_setting(tmp_path: Path, arguments: list[str]) -> None:
    command = [sys.executable, "-m", "ottla", "serve", "--announce", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        process.terminate()
        assert process.wait(timeout=120) == 0
    _, lab = line.split()
    assert lab.startswith("http://127.0.0.1:")
    assert not lab.endswith((":0", ":9644"))
