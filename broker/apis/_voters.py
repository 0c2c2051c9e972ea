"""Helpers of AddRaftVoter and RemoveRaftVoter: the metadata log has one voter, and no controller can join it."""

from __future__ import annotations

from typing import NamedTuple

from ...coordinator.hashing import put_order
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ...protocol.schema import NO_UUID
from ...storage.checkpoints import uuid_to_text
from ..net.context import Context


class ReplicaKey(NamedTuple):
    """A replica of the metadata log: a controller, and the log directory that has its log."""

    id: int
    directory_id: bytes

    def __str__(self) -> str:
        return f"ReplicaKey(id={self.id}, directoryId={uuid_to_text(self.directory_id)})"

    @property
    def is_valid(self) -> bool:
        return self.id >= 0 and self.directory_id != NO_UUID


def check_cluster(context: Context, asked: str | None) -> None:
    """Raises ApiError(INCONSISTENT_CLUSTER_ID): the request names another cluster."""
    own = context.broker.cluster_id
    if asked is not None and asked != own:
        text = f'The given id "{asked}" doesn\'t match the cluster id "{own}"'
        raise ApiError(Errors.INCONSISTENT_CLUSTER_ID, text)


def own_voter(context: Context) -> ReplicaKey:
    """Returns the only voter."""
    voter = context.broker.metadata.voter()
    return ReplicaKey(voter.id, voter.directory_id)


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
