"""Helpers of AddRaftVoter and RemoveRaftVoter: the voters of the metadata log, and the checks."""

from __future__ import annotations

from collections.abc import Sequence

from ...coordinator.hashing import put_order, table_order
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..controller.metadata_log import ReplicaKey
from ..net.context import Context


async def voters_of(context: Context, asked_cluster: str | None) -> list[ReplicaKey]:
    """Returns the voters, once there is a controller that answers. Raises ApiError(REQUEST_TIMED_OUT), and
    INCONSISTENT_CLUSTER_ID if the request names another cluster.
    """
    metadata, own = context.broker.metadata, context.broker.cluster_id
    await metadata.answers()
    if asked_cluster is not None and asked_cluster != own:
        text = f'The given id "{asked_cluster}" doesn\'t match the cluster id "{own}"'
        raise ApiError(Errors.INCONSISTENT_CLUSTER_ID, text)
    return [metadata.replica_key(node) for node in metadata.quorum.voters]


def listed(voters: Sequence[ReplicaKey]) -> str:
    """Returns the text of a set of voters, in the order of a Java HashSet."""
    return f"[{', '.join(map(str, table_order(voters, ReplicaKey.java_hash)))}]"


def check_listeners(context: Context, listeners: list[messages.AddRaftVoterRequest.Listener]) -> None:
    """Raises ApiError(INVALID_REQUEST): the listener of controllers is not among those of the new one."""
    wanted = context.broker.metadata.voter().listener
    by_name = {one.name.upper(): one for one in listeners}
    if wanted not in by_name:
        places = ", ".join(
            f"ListenerName({name})={by_name[name].host}/<unresolved>:{by_name[name].port}"
            for name in put_order(by_name, len(listeners))
        )
        raise ApiError(
            Errors.INVALID_REQUEST,
            f"Add voter request didn't include the endpoint (Endpoints(endpoints={{{places}}})) for the default "
            f"listener ListenerName({wanted})",
        )


def is_reached(context: Context, node: int, listeners: list[messages.AddRaftVoterRequest.Listener]) -> bool:
    """Whether a controller answers: that of a node, or any at the address of the controllers' listener."""
    at = context.broker.config.controller_listener
    known = any((one.host, one.port) == (at.host, at.port) for one in listeners)
    return known or context.broker.nodes.reaches(node, None)
