"""How commands are told to reach a ZooKeeper."""

from __future__ import annotations

from pathlib import Path

import pytest
from ottla.broker.config.config import ConfigError

from ottla.zookeeper_options import known_keys, zookeeper_config

LOGIN = "java.security.auth.login.config"


def test_the_last_source_counts_and_other_keys_of_files_do_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_OPTS", f"-D{LOGIN}=/environment")
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("zookeeper.connect=a:1\nlog.segment.bytes=x\nzookeeper.ssl.keystore.type=JKS\n")
    second.write_text("zookeeper.set.acl=true\nzookeeper.ssl.keystore.type=PEM\nzookeeper.ssl.protocol=TLSv1.2\n")
    found = zookeeper_config("b:1/x", [str(first), str(second)], ["zookeeper.ssl.protocol=TLSv1.3"])
    keys = ("connect", "set.acl", "ssl.keystore.type", "ssl.protocol")
    assert [found[f"zookeeper.{key}"] for key in keys] == ["b:1/x", False, "PEM", "TLSv1.3"]
    assert found[LOGIN] == "/environment"
    assert zookeeper_config("b:1", [], [f"{LOGIN}=/given"])[LOGIN] == "/given"


def test_keys_that_do_not_say_how_zookeeper_is_reached_are_refused() -> None:
    for key in ("zookeeper.connect", "zookeeper.set.acl", "log.dirs", "zookeeper.ssl.keystore"):
        with pytest.raises(ConfigError, match=rf"command line: {key} does not say how ZooKeeper is reached"):
            zookeeper_config("b:1", [], [f"{key}=1"])
    with pytest.raises(ConfigError, match=r"'zookeeper' is not of the form key=value"):
        zookeeper_config("b:1", [], ["zookeeper"])


def test_all_that_serve_reads_for_it_can_be_said() -> None:
    assert {"zookeeper.session.timeout.ms", "zookeeper.ssl.truststore.location", LOGIN} < known_keys().keys()
