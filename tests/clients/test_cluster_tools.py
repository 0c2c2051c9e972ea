"""`kafka-metadata-quorum` and `kafka-cluster` where they change who is in the cluster: they print of ottla what they
print of Kafka.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ottla.storage.checkpoints import uuid_to_text

from ottla.testing import Broker

from ..oracle.kafka import Kafka
from ..oracle.tools import tool

pytestmark = [pytest.mark.slow, pytest.mark.oracle]
DIRECTORY = uuid_to_text(bytes(range(16)))
_SAID = re.compile(r"[A-Z][a-z]|org.apache|DRY")  # not the log of the client, nor stacks
_UUID = re.compile(r"(?<=directoryId=)[A-Za-z0-9_-]{22}")


def new_controller(folder: Path, node_id: int) -> Path:
    """Writes what `add-controller` reads of the controller that it adds: its configuration and its directory."""
    data = folder / f"data-{node_id}"
    data.mkdir()
    (data / "meta.properties").write_text(
        f"version=1\ncluster.id=some-cluster\nnode.id={node_id}\ndirectory.id={DIRECTORY}\n"
    )
    properties = folder / f"{node_id}.properties"
    properties.write_text(
        f"process.roles=controller\nnode.id={node_id}\nlog.dirs={data}\ncontroller.listener.names=CONTROLLER\n"
        "listeners=CONTROLLER://127.0.0.1:1\ncontroller.quorum.bootstrap.servers=127.0.0.1:1\n"
    )
    return properties


def printed(servers: str, folder: Path) -> dict[str, tuple[int, list[str]]]:
    """What each command prints, and its exit code."""
    folder.mkdir()
    added = {
        f"add-controller {n}": ("--command-config", str(new_controller(folder, n)), "add-controller") for n in (1, 7)
    }
    removed = {
        f"remove-controller {' '.join((str(n), *more))}": ("remove-controller", "-i", str(n), "-d", DIRECTORY, *more)
        for n in (1, 7)
        for more in ((), ("--dry-run",))
    }
    found = {}
    for name, words in {**added, **removed}.items():
        done = tool("MetadataQuorumCommand", "--bootstrap-server", servers, *words)
        said = _UUID.sub("its own", done.stdout + done.stderr)
        found[name] = (done.returncode, [line for line in said.splitlines() if _SAID.match(line)])
    return found


def test_they_print_what_they_print_of_kafka(tmp_path: Path) -> None:
    with Broker(lab=False) as ours, Kafka() as kafka:
        mine, theirs = (
            printed(ours.bootstrap_servers, tmp_path / "ours"),
            printed(kafka.bootstrap_servers, tmp_path / "k"),
        )
    assert mine == theirs
    assert "already part of the set of voters" in "\n".join(mine["add-controller 1"][1])
    assert "Cannot remove voter" in "\n".join(mine["remove-controller 7"][1])
