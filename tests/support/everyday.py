"""The requests whose speed `make bench` compares, to a broker in memory."""

from __future__ import annotations

from ottla.protocol import messages as m

from .ask import batch, produce_message
from .topic_world import create, produced, read
from .world import World


def everyday_world() -> World:
    """A world with what the requests need."""
    world = World()
    create(world, "t")
    world.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
    world.pass_ms(1000)
    return world


def ask_everyday(world: World) -> None:
    """Produces, fetches, commits and asks for metadata."""
    assert produced(world.ask("Produce", 9, produce_message("t", batch(b"v")))).error_code == 0
    assert read(world, "t")[-1:] == [b"v"]
    r = m.OffsetCommitRequest
    partition = r.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topics = [r.OffsetCommitRequestTopic(name="t", partitions=[partition])]
    committed = world.ask("OffsetCommit", 8, r(group_id="g", generation_id_or_member_epoch=-1, topics=topics))
    assert committed.topics[0].partitions[0].error_code == 0
    assert world.ask("Metadata", 12, m.MetadataRequest(topics=None)).topics[0].error_code == 0
