"""What a member says its topology looks like (KIP-1331), as it is shown to others."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING

from ....protocol import messages
from ....protocol.errors import ApiError, Errors

if TYPE_CHECKING:
    _Given = messages.StreamsGroupTopologyDescriptionUpdateRequest
    _Shown = messages.StreamsGroupDescribeResponse

SOURCE, PROCESSOR, SINK = 1, 2, 3  # types of nodes


def shown_of(given: _Given.TopologyDescription) -> Generator[None, None, _Shown.TopologyDescription]:
    """Returns the description for a reply: of each node what its type has, each name once. Yields after each node.

    Raises ApiError(INVALID_REQUEST): a node is of no known type, or a global store is not of a source and a processor.
    """
    r = messages.StreamsGroupDescribeResponse
    shown = r.TopologyDescription()
    for part in given.subtopologies:
        nodes = []
        for one in part.nodes:
            nodes.append(_node(one))
            yield
        shown.subtopologies.append(r.TopologyDescriptionSubtopology(subtopology_id=part.subtopology_id, nodes=nodes))
    for store in given.global_stores:
        source, processor = _node(store.source), _node(store.processor)
        if (source.node_type, processor.node_type) != (SOURCE, PROCESSOR):
            raise ApiError(Errors.INVALID_REQUEST, "Global store must be composed of a source and a processor node.")
        shown.global_stores.append(r.TopologyDescriptionGlobalStore(source=source, processor=processor))
        yield
    return shown


def _node(given: _Given.TopologyDescriptionNode) -> _Shown.TopologyDescriptionNode:
    kind = given.node_type
    if kind not in (SOURCE, PROCESSOR, SINK):
        raise ApiError(Errors.INVALID_REQUEST, f"Unknown topology node type: {kind}")
    return messages.StreamsGroupDescribeResponse.TopologyDescriptionNode(
        name=given.name,
        node_type=kind,
        source_topics=_once(given.source_topics) if kind == SOURCE else [],
        sink_topic=given.sink_topic if kind == SINK else None,
        stores=_once(given.stores) if kind == PROCESSOR else [],
        successors=_once(given.successors),
    )


def _once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
