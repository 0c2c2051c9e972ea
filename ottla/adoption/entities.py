"""What ZooKeeper knew of users, clients and addresses, as records of the metadata log: client quotas, SCRAM
credentials, rights (ACLs) and delegation tokens.

Each is checked as if a client asked for it; what ottla would refuse is named, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar
from uuid import uuid4

from ..coordinator.metadata import acls, credentials, quotas
from ..coordinator.metadata.state import MetadataState
from ..coordinator.security.acl_names import acl_named
from ..coordinator.security.acls import Acl, PatternType, as_record
from ..coordinator.security.scram import MECHANISMS, parse_credential
from ..protocol import messages, zookeeper_rights
from ..protocol import zookeeper_paths as paths
from ..protocol import zookeeper_values as values
from ..protocol.errors import ApiError
from ..protocol.zookeeper_json import Malformed

T = TypeVar("T")
_PATTERNS = ((paths.ACLS, PatternType.LITERAL), (paths.PREFIXED_ACLS, PatternType.PREFIXED))
_KINDS = {paths.USERS: quotas.USER, paths.CLIENTS: quotas.CLIENT_ID, paths.IPS: quotas.IP}
Refused = Callable[[str], None]
"""Gets what cannot be carried over."""


class Nodes(Protocol):
    """Reads ZooKeeper."""

    def get(self, path: str) -> bytes | None:
        """Returns the content of a node; None if there is none."""

    def children(self, path: str) -> list[str]:
        """Returns the names of the nodes below one; none if there is no such node."""


def records_of(nodes: Nodes, state: MetadataState, refused: Refused) -> Iterator[messages.Struct]:
    """Yields the records of all of it. `state`: with the features of the target. Raises what `nodes` raises."""
    yield from _configured(nodes, refused)
    yield from _rights(nodes, state, refused)
    yield from _tokens(nodes, refused)


def _read(path: str, data: bytes | None, decode: Callable[[bytes | None], T], refused: Refused) -> T | None:
    try:
        return decode(data)
    except Malformed as error:
        refused(f"{path}: {error}")
        return None


# quotas and credentials, which are configurations of entities


def _configured(nodes: Nodes, refused: Refused) -> Iterator[messages.Struct]:
    for kind in (paths.CLIENTS, paths.USERS, paths.IPS):
        above = f"{paths.CONFIG}/{kind}"
        for name in nodes.children(above):
            path, entity = f"{above}/{name}", {_KINDS[kind]: _name(name)}
            yield from _limits(nodes, path, entity, refused)
            if kind == paths.USERS:
                for client in nodes.children(f"{path}/{paths.CLIENTS}"):
                    of_both = {**entity, quotas.CLIENT_ID: _name(client)}
                    yield from _limits(nodes, f"{path}/{paths.CLIENTS}/{client}", of_both, refused)


def _name(node: str) -> str | None:
    return None if node == paths.DEFAULT_ENTITY else paths.desanitized(node)


def _limits(nodes: Nodes, path: str, entity: dict[str, str | None], refused: Refused) -> Iterator[messages.Struct]:
    """Yields the records of one entity."""
    found = _read(path, nodes.get(path), values.config_of, refused) or {}
    for key, text in sorted(found.items()):
        try:
            if key in MECHANISMS and entity.keys() == {quotas.USER}:
                yield _credential(entity[quotas.USER] or "", key, text)
            else:
                limit = {key: float(text)}
                quotas.check(quotas.limits_of(tuple(sorted(entity.items())), limit), ())
                r = messages.ClientQuotaRecord
                named = [r.EntityData(entity_type=kind, entity_name=name) for kind, name in sorted(entity.items())]
                yield r(entity=named, key=key, value=limit[key])
        except ApiError as error:
            refused(f"{path}: {key}: {error}")
        except (KeyError, ValueError):
            refused(f"{path}: {key}: the value has not the form that Kafka gives it")


def _credential(user: str, mechanism: str, text: str) -> messages.UserScramCredentialRecord:
    """Raises ValueError."""
    if not user:
        raise ValueError(mechanism)
    found = parse_credential(text)
    return credentials.record_of(user, MECHANISMS[mechanism], found)


# rights


def _rights(nodes: Nodes, state: MetadataState, refused: Refused) -> Iterator[messages.Struct]:
    for above, pattern in _PATTERNS:
        for kind in nodes.children(above):
            for name in nodes.children(f"{above}/{kind}"):
                path = f"{above}/{kind}/{name}"
                entries = _read(path, nodes.get(path), zookeeper_rights.acl_entries_of, refused) or []
                yield from _entries(path, (kind, name, pattern), entries, state, refused)


def _entries(
    path: str,
    of: tuple[str, str, PatternType],
    entries: Iterable[zookeeper_rights.AclEntry],
    state: MetadataState,
    refused: Refused,
) -> Iterator[messages.Struct]:
    kind, name, pattern = of
    seen: set[Acl] = set()
    for one in entries:
        try:
            acl = acl_named(kind, name, pattern, one)
            acls.check(state, acl)
        except ApiError as error:
            refused(f"{path}: {one}: {error}")
        except KeyError as error:
            refused(f"{path}: {one}: Kafka 4.4 does not know {error.args[0]}")
        else:
            if acl not in seen:
                seen.add(acl)
                yield as_record(uuid4().bytes, acl)


# tokens


def _tokens(nodes: Nodes, refused: Refused) -> Iterator[messages.Struct]:
    for name in nodes.children(paths.TOKENS):
        path = f"{paths.TOKENS}/{name}"
        found = _read(path, nodes.get(path), values.Token.decode, refused)
        if found is not None:
            owner = paths.desanitized(found.owner)
            yield messages.DelegationTokenRecord(
                token_id=found.token_id,
                owner=owner,
                requester=paths.desanitized(found.requester) if found.requester else owner,
                renewers=[paths.desanitized(one) for one in found.renewers],
                issue_timestamp=found.issued_ms,
                max_timestamp=found.latest_ms,
                expiration_timestamp=found.expires_ms,
            )
