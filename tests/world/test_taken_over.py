"""Brokers on what `ottla takeover` made of directories that Kafkas with KRaft before 4.0 wrote, and on those whose
cluster came from ZooKeeper.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors
from ottla.protocol.features import METADATA_VERSION, defaults

from ottla.adoption.findings import opened
from ottla.handover import HandoverRefused, source
from ottla.handover.layout import Wanted
from ottla.handover.report import ReportView
from ottla.handover.work import Order, take_over

from ..support.ask import batch, produce_message
from ..support.entities import quotas_of
from ..support.old_directories import KraftDirectories, committed, in_memory, read
from ..support.poll import until
from ..support.topic_world import create
from ..support.world import World

CASES = (
    ("3.0.2", "clean"),
    ("3.0.2", "killed"),
    ("3.1.2", "clean"),
    ("3.1.2", "killed"),
    ("3.2.3", "clean"),
    ("3.2.3", "killed"),
    ("3.3.2", "clean"),
    ("3.3.2", "killed"),
    ("3.4.1", "clean"),
    ("3.4.1", "killed"),
    ("3.5.2", "clean"),
    ("3.5.2", "killed"),
    ("3.6.2", "clean"),
    ("3.7.2", "clean"),
    ("3.7.2", "killed"),
    ("3.8.1", "clean"),
    ("3.9.1", "clean"),
    ("3.9.1", "killed"),
    ("migration", "migrating"),
    ("migration", "migrated"),
)
PREVIEWS = ("3.0.2", "3.1.2", "3.2.3")  # of KRaft, whose metadata have no version
LEFT_OUT = (
    "configuration segment.bytes of plain: Invalid value 2000 for configuration segment.bytes: Value must be at least "
    "1048576",
    "configuration message.timestamp.difference.max.ms of packed: Kafka 4.4 does not know it",
)


def taken_over(paths: tuple[str, ...], to: Path) -> tuple[World, ReportView]:
    made = take_over(Order(paths, str(to), Wanted()))
    return World(in_memory(to), 0, 1_795_600_000_000), made.view


@pytest.mark.long
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_everything_is_there(name: str, kind: str, tmp_path: Path) -> None:
    recorded = KraftDirectories(name, tmp_path)
    world, report = taken_over(recorded.nodes(kind), tmp_path / "data")
    assert report["lost"] == []
    assert set(LEFT_OUT) <= set(report["left_out"])
    (level,) = (one.split(":")[0] for one in report["notes"] if one.startswith("metadata.version"))
    assert level.startswith("metadata.version has no level" if name in PREVIEWS else "metadata.version stays")
    assert (world.broker.image.features[METADATA_VERSION] == defaults()[METADATA_VERSION]) is (name in PREVIEWS)
    truth = recorded.truth[kind]
    for at, rows in truth["records"].items():
        topic, _, index = at.rpartition("-")
        assert read(world, topic, int(index)) == rows, at
    found = until(lambda: committed(world, "simple", ["plain", "packed"]), "the group is loaded")
    assert found == truth["offsets"]["simple"]
    assert quotas_of(world) == [[[["user", "u"]], [["producer_byte_rate", 1000.0]]]]
    assert world.broker.image.config_of(2, "plain")["retention.ms"] == "900000000"
    message = produce_message("plain", batch(b"new"))
    assert world.ask("Produce", 9, message).responses[0].partition_responses[0].error_code == 0
    assert len(read(world, "plain", 0)) == len(truth["records"]["plain-0"]) + 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "level", "has_directories"),
    [("3.2.3", defaults()[METADATA_VERSION], True), ("3.6.2", 14, False), ("3.7.2", 19, True)],
)
def test_metadata_have_what_their_version_has(name: str, level: int, has_directories: bool, tmp_path: Path) -> None:
    """Kafka 4.4 does not start on others: tests/oracle/test_taken_over.py."""
    recorded = KraftDirectories(name, tmp_path)
    take_over(Order(recorded.nodes("clean"), str(tmp_path / "data"), Wanted()))
    with source.opened((str(tmp_path / "data"),)) as made:
        image = made.image
    assert image.features[METADATA_VERSION] == level
    assert [bool(one.log_dirs) for one in image.brokers.values()] == [has_directories] * len(image.brokers)
    assert {bool(one.directories) for one in image.partitions.values()} == {has_directories}


def of_before_3_7(tmp_path: Path) -> World:
    """A broker whose metadata version has no SCRAM, no controllers and no log directories."""
    return taken_over(KraftDirectories("3.3.2", tmp_path).nodes("clean"), tmp_path / "data")[0]


def directories(world: World, topic: str) -> list[tuple[bytes, ...]]:
    """The log directories of the broker, and those of the replicas of a topic, none of which is all zeros."""
    image = world.broker.image
    replicas = image.partitions[image.topics[topic].id, 0].directories
    return [image.brokers[1].log_dirs, tuple(one for one in replicas if any(one))]


def test_a_broker_writes_what_the_metadata_version_has(tmp_path: Path) -> None:
    """Kafka 4.4 does not start on other metadata: tests/oracle/test_taken_over.py."""
    world = of_before_3_7(tmp_path)
    create(world, "made")
    assert directories(world, "made") == [(), ()]
    assert not world.broker.image.controllers
    r, a = m.AlterUserScramCredentialsRequest, m.IncrementalAlterConfigsRequest
    user = r.ScramCredentialUpsertion(name="u", mechanism=1, iterations=4096, salt=b"s", salted_password=b"p" * 32)
    (answer,) = world.ask("AlterUserScramCredentials", 0, r(upsertions=[user])).results
    text = "The current metadata.version does not support SCRAM"
    assert (answer.error_code, answer.error_message) == (Errors.UNSUPPORTED_VERSION, text)
    key = a.AlterableConfig(name="cordoned.log.dirs", config_operation=0, value="/data")
    asked = a(resources=[a.AlterConfigsResource(resource_type=4, resource_name="1", configs=[key])])
    (refused,) = world.ask("IncrementalAlterConfigs", 1, asked).responses
    text = "The cordoned.log.dirs configuration value cannot be set because it requires metadata.version >= 4.3-IV0"
    assert (refused.error_code, refused.error_message) == (Errors.INVALID_CONFIG, text)


def test_a_raised_metadata_version_has_the_directories_and_the_controller(tmp_path: Path) -> None:
    """The broker registers again, with the epoch that it had, as Kafka's does."""
    world = of_before_3_7(tmp_path)
    create(world, "before")
    epoch = world.broker.image.brokers[1].epoch
    assert updated(world, defaults()[METADATA_VERSION], kind=1) == "NONE"
    image, own = world.broker.image, world.broker.log_directories.all[0].id
    world.pass_ms(100)
    create(world, "after")
    assert directories(world, "before") == [(own,), ()]
    assert directories(world, "after") == [(own,), (own,)]
    assert (image.brokers[1].epoch, image.brokers[1].fenced, list(image.controllers)) == (epoch, False, [1])


def updated(world: World, level: int, kind: int) -> str:
    r = m.UpdateFeaturesRequest
    wanted = r.FeatureUpdateKey(feature=METADATA_VERSION, max_version_level=level, upgrade_type=kind)
    return Errors(world.ask("UpdateFeatures", 1, r(feature_updates=[wanted], timeout_ms=1000)).error_code).name


@pytest.mark.parametrize("kind", [2, 3])
def test_a_metadata_version_goes_down_where_the_records_are_the_same(kind: int, tmp_path: Path) -> None:
    """Since 3.7-IV2 nothing but 4.0-IV1 changed what records say."""
    world = taken_over(KraftDirectories("3.7.2", tmp_path).nodes("clean"), tmp_path / "data")[0]
    assert world.broker.image.features[METADATA_VERSION] == 19
    assert updated(world, 17, kind) == "NONE"
    assert updated(world, 16, kind) == "INVALID_UPDATE_VERSION"
    assert updated(world, 22, kind=1) == "NONE"
    assert updated(world, 18, kind) == "NONE"
    assert world.broker.image.features[METADATA_VERSION] == 18
    create(world, "after")


def test_what_kafka_2_8_wrote_is_refused(tmp_path: Path) -> None:
    recorded = KraftDirectories("2.8.2", tmp_path)
    with pytest.raises(HandoverRefused, match=r"Kafka 2\.8"):
        taken_over(recorded.nodes("clean"), tmp_path / "data")


@pytest.mark.parametrize("kind", ["migrating", "migrated"])
def test_directories_of_a_migrated_cluster_are_not_adopted(kind: str, tmp_path: Path) -> None:
    """KRaft's metadata count, also while the broker is still one with ZooKeeper."""
    recorded = KraftDirectories("migration", tmp_path)
    with pytest.raises(HandoverRefused, match="use `ottla takeover`"), opened(recorded.nodes(kind)):
        pass


def test_a_cluster_whose_migration_had_only_begun_is_adopted(tmp_path: Path) -> None:
    """Its controller's log says that ZooKeeper decides."""
    recorded = KraftDirectories("migration", tmp_path)
    (broker,) = recorded.nodes("begun")
    with pytest.raises(HandoverRefused, match="use `ottla adopt`"):
        taken_over((broker,), tmp_path / "data")
    with opened((broker,)) as (found,):
        assert found.broker_id == 1
        assert ("plain", 0) in found.surveys
