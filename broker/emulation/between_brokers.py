"""Requests between brokers with ZooKeeper and their controller: LeaderAndIsr, StopReplica, UpdateMetadata and
ControlledShutdown until 3.9, AlterPartition (AlterIsr) since 2.7. Kafka takes them from whoever sends them; here the
controller is in the process, so that who sends them is none, and is refused.

**Behaviour**
- Without the right ClusterAction: CLUSTER_AUTHORIZATION_FAILED.
- LeaderAndIsr, StopReplica, UpdateMetadata: STALE_CONTROLLER_EPOCH, as for an epoch that is over, whatever epoch they
  name. 0.8.2 answers UNKNOWN_SERVER_ERROR to UpdateMetadata.
- ControlledShutdown: BROKER_NOT_AVAILABLE for a broker that is not there, CLUSTER_AUTHORIZATION_FAILED for one that is.
  0.8.2 answers UNKNOWN_SERVER_ERROR.
- AlterPartition: STALE_BROKER_EPOCH, as for an epoch that is over, whatever epoch it names.
- While another broker is the controller in ZooKeeper: ControlledShutdown has STALE_CONTROLLER_EPOCH, AlterPartition
  NOT_CONTROLLER.
- Envelope, which brokers with ZooKeeper list since 3.4, closes the connection, as does every one that is malformed.
- What follows the header is not looked at, but for the id of a broker.
"""

from __future__ import annotations

import struct

from ...protocol import headers
from ...protocol.errors import ErrorCode, Errors, MalformedMessage
from ..apis.k27_write_txn_markers import BROKERS
from ..broker import Broker
from ..net.api import Api
from ..net.context import Context
from ..net.dispatch import Refused
from ..peer import Peer
from ..replies import Reply
from .releases import Release

LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA, CONTROLLED_SHUTDOWN = range(4, 8)
ALTER_PARTITION, ENVELOPE = 56, 58
NAMES = {
    LEADER_AND_ISR: "LeaderAndIsr",
    STOP_REPLICA: "StopReplica",
    UPDATE_METADATA: "UpdateMetadata",
    CONTROLLED_SHUTDOWN: "ControlledShutdown",
    ALTER_PARTITION: "AlterPartition",
    ENVELOPE: "Envelope",
}
OLDEST = (LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA, CONTROLLED_SHUTDOWN)
FLEXIBLE_SINCE = {
    LEADER_AND_ISR: 4,
    STOP_REPLICA: 2,
    UPDATE_METADATA: 6,
    CONTROLLED_SHUTDOWN: 3,
    ALTER_PARTITION: 0,
    ENVELOPE: 0,
}
_START = struct.Struct(">hhi")
_ID = struct.Struct(">i")
_ERROR = struct.Struct(">h")


def versions_of(release: Release) -> dict[int, tuple[int, int]]:
    """Returns the versions that a release serves, by key. Before 1.0 the classes of clients did not name all."""
    if release.is_before(0, 9):
        return dict.fromkeys(OLDEST, (0, 0))
    found = {key: release.apis[key] for key in NAMES if key in release.apis}
    return {key: (0, high) for key, (_, high) in found.items()}


def refusal(broker: Broker, release: Release, peer: Peer, frame: memoryview) -> Reply:
    """Returns the reply to a request with one of these keys. Raises Refused if the release does not serve its version,
    or if it ends too early.
    """
    key, version, correlation_id = _START.unpack_from(frame)
    name, (low, high) = NAMES[key], versions_of(release)[key]
    if not low <= version <= high:
        raise Refused(f"{name} has no version {version}")
    if key == ENVELOPE:
        raise Refused("an Envelope is for controllers")
    is_flexible = version >= FLEXIBLE_SINCE[key]
    client_id, start = None, _START.size
    try:
        if (key, version) != (CONTROLLED_SHUTDOWN, 0):  # whose header has no client id
            client_id, start = headers.client_id_of(2 if is_flexible else 1, frame)
        if key == CONTROLLED_SHUTDOWN and len(frame) < start + _ID.size:
            raise MalformedMessage(name, "there is no id of a broker")
    except MalformedMessage as error:
        raise Refused(f"{name} v{version}: {error}") from None
    api = Api(key, "", "", f"{name}Request", f"{name}Response", low, high, False, 0)
    context = Context(broker, api, version, correlation_id, client_id, peer)
    if not BROKERS.allows(context):
        error_code = BROKERS.code
    elif release.is_before(0, 9) and key in (UPDATE_METADATA, CONTROLLED_SHUTDOWN):
        error_code = Errors.UNKNOWN_SERVER_ERROR
    else:
        node_id = _ID.unpack_from(frame, start)[0] if key == CONTROLLED_SHUTDOWN else -1
        error_code = _error(broker, key, node_id)
    return Reply(_reply(key, is_flexible, correlation_id, int(error_code)), [])


def _error(broker: Broker, key: int, node_id: int) -> ErrorCode:
    """Returns the error of a request of who may send it. `node_id`: that of the broker that wants to shut down."""
    is_controller = broker.zookeeper is None or broker.zookeeper.is_controller
    if key == ALTER_PARTITION:
        return Errors.STALE_BROKER_EPOCH if is_controller else Errors.NOT_CONTROLLER
    if key != CONTROLLED_SHUTDOWN or not is_controller:
        return Errors.STALE_CONTROLLER_EPOCH
    is_there = node_id in broker.image.brokers
    return Errors.CLUSTER_AUTHORIZATION_FAILED if is_there else Errors.BROKER_NOT_AVAILABLE


def _reply(key: int, is_flexible: bool, correlation_id: int, error_code: int) -> bytearray:
    """Returns the frame of a reply: how long the client is throttled (AlterPartition), the error, and an empty list,
    which UpdateMetadata does not have.
    """
    throttle_time_ms = bytes(4) if key == ALTER_PARTITION else b""
    has_list = key != UPDATE_METADATA
    none = (b"\1" if is_flexible else bytes(4)) if has_list else b""
    tags = b"\0" if is_flexible else b""
    body = _ID.pack(correlation_id) + tags + throttle_time_ms + _ERROR.pack(error_code) + none + tags
    return bytearray(_ID.pack(len(body)) + body)
