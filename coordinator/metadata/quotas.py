"""Client quotas of users, client ids and addresses: the controller's handler (ClientQuotaControlManager, KIP-546), and
which of them a filter matches.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Final, NamedTuple

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..hashing import java_order, put_order
from ..shard import Decision, Result
from .controller import Controller, bounded
from .state import Quota

if TYPE_CHECKING:
    Part = messages.AlterClientQuotasRequest.EntityData
    Operation = messages.AlterClientQuotasRequest.OpData
    Component = messages.DescribeClientQuotasRequest.ComponentData

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"
EXACT, OF_DEFAULT, ANY_NAME = range(3)  # match types

Entity = tuple[tuple[str, str | None], ...]
"""Pairs of type and name, in order of the types; the name None is the default."""


class _Integer(NamedTuple):
    """A key whose values are whole."""

    name: str
    max: int


_OF_CLIENTS: dict[str, _Integer | None] = {
    PRODUCER_BYTE_RATE: _Integer("a LONG", 2**63 - 1),
    CONSUMER_BYTE_RATE: _Integer("a LONG", 2**63 - 1),
    REQUEST_PERCENTAGE: None,
    CONTROLLER_MUTATION_RATE: None,
}
_OF_ADDRESSES: dict[str, _Integer | None] = {CONNECTION_CREATION_RATE: _Integer("an INT", 2**31 - 1)}


class Alteration(NamedTuple):
    """What a request changes of one entity; its types and the keys are in the order of Kafka's hash tables. A value of
    None removes the limit of its key.
    """

    entity: Entity
    types: Sequence[str]
    values: Mapping[str, float | None]
    duplicate_key: bool


def alteration(parts: Sequence[Part], operations: Sequence[Operation]) -> Alteration:
    """Returns what a request wants. Kafka's tables are made for as many entries as the request has."""
    names = {part.entity_type: part.entity_name for part in parts}
    values: dict[str, float | None] = {}
    duplicate = False
    for one in operations:
        duplicate = duplicate or one.key in values
        values[one.key] = None if one.remove else one.value
    in_order = {key: values[key] for key in put_order(values, len(operations))}
    return Alteration(tuple(sorted(names.items())), put_order(names, len(parts)), in_order, duplicate)


def limits_of(entity: Entity, limits: Mapping[str, float | None]) -> Alteration:
    """Returns the alteration that sets or removes limits of an entity, for which nobody made a request."""
    return Alteration(entity, [kind for kind, _ in entity], limits, False)


def alter(
    controller: Controller, wanted: Sequence[Alteration], unknown_hosts: Container[str]
) -> Decision[dict[Entity, ApiError | None]]:
    """Changes the limits of entities; the reply has each entity once, with its error or None.

    `unknown_hosts`: names of `ip` entities that cannot be resolved.
    """
    records: list[messages.ClientQuotaRecord] = []
    outcome: dict[Entity, ApiError | None] = {}
    for one in wanted:
        yield
        if one.duplicate_key or one.entity in outcome:
            text = f"Ignoring duplicate entity {_in_java(one)}"
            outcome[one.entity] = ApiError(Errors.INVALID_REQUEST, text)
            continue
        try:
            check(one, unknown_hosts)
        except ApiError as error:
            outcome[one.entity] = error
        else:
            outcome[one.entity] = None
            records += _records(controller, one)
    return bounded(Result(records, outcome))


def check(wanted: Alteration, unknown_hosts: Container[str]) -> None:
    """Raises ApiError(INVALID_REQUEST)."""
    if not wanted.entity:
        raise ApiError(Errors.INVALID_REQUEST, "Invalid empty client quota entity")
    entity = dict(wanted.entity)
    for kind in wanted.types:
        if kind not in (USER, CLIENT_ID, IP):
            raise ApiError(Errors.INVALID_REQUEST, f"Unhandled client quota entity type: {kind}")
        if entity[kind] == "":
            raise ApiError(Errors.INVALID_REQUEST, f"Empty {kind} not supported")
    keys = _OF_CLIENTS
    if IP in entity:
        if len(entity) > 1:
            text = "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
            raise ApiError(Errors.INVALID_REQUEST, text)
        host = entity[IP]
        if host is not None and host in unknown_hosts:
            raise ApiError(Errors.INVALID_REQUEST, f"{host} is not a valid IP or resolvable host.")
        keys = _OF_ADDRESSES
    for key, value in wanted.values.items():
        if value is not None:
            _check_value(keys, key, value)


def _check_value(keys: Mapping[str, _Integer | None], key: str, value: float) -> None:
    if key not in keys:
        raise ApiError(Errors.INVALID_REQUEST, f"Invalid configuration key {key}")
    if not isfinite(value):
        raise ApiError(Errors.INVALID_REQUEST, f"Quota {key} must be a finite number")
    if value <= 0:
        raise ApiError(Errors.INVALID_REQUEST, f"Quota {key} must be greater than 0")
    whole = keys[key]
    if whole is None:
        return
    if value > whole.max:
        raise ApiError(Errors.INVALID_REQUEST, f"Proposed value for {key} is too large for {whole.name}.")
    if abs(value % 1.0) > 1e-6:
        raise ApiError(Errors.INVALID_REQUEST, f"{key} cannot be a fractional value.")


def _records(controller: Controller, wanted: Alteration) -> list[messages.ClientQuotaRecord]:
    """Returns the records of what changes, in the order in which Kafka's image takes them over; a limit that is what it
    was has none.
    """
    r = messages.ClientQuotaRecord
    records = []
    for key in java_order(wanted.values):
        value = wanted.values[key]
        before = controller.state.quotas.get(Quota(wanted.entity, key))
        if (None if before is None else before.value) == value:
            continue
        entity = [r.EntityData(entity_type=kind, entity_name=name) for kind, name in wanted.entity]
        records.append(r(entity=entity, key=key, value=value or 0.0, remove=value is None))
    return records


def _in_java(wanted: Alteration) -> str:
    names = dict(wanted.entity)
    parts = [f"{kind}={_text(names[kind])}" for kind in wanted.types]
    return f"ClientQuotaEntity(entries={{{', '.join(parts)}}})"


def _text(name: str | None) -> str:
    return "null" if name is None else name


class Filter:
    """Which entities a DescribeClientQuotas asks for: by names of types, and by types of which any name will do. Raises
    ApiError(INVALID_REQUEST or UNSUPPORTED_VERSION).
    """

    def __init__(self, components: Iterable[Component], is_strict: bool) -> None:
        self.names: dict[str, str | None] = {}
        self.any_name: dict[str, None] = {}
        self._is_strict = is_strict
        for one in components:
            self._add(one)
        asked = {**self.names, **self.any_name}
        if IP in asked and len(asked) > 1:
            text = (
                "Invalid entity filter component combination. IP filter component should not be used with "
                "user or clientId filter component."
            )
            raise ApiError(Errors.INVALID_REQUEST, text)

    def _add(self, component: Component) -> None:
        kind, match = component.entity_type, component.match
        if not kind:
            raise ApiError(Errors.INVALID_REQUEST, "Invalid empty entity type.")
        if kind in self.names or kind in self.any_name:
            raise ApiError(Errors.INVALID_REQUEST, f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in (USER, CLIENT_ID, IP):
            raise ApiError(Errors.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        if component.match_type == EXACT:
            if match is None:
                text = "Request specified MATCH_TYPE_EXACT, but set match string to null."
                raise ApiError(Errors.INVALID_REQUEST, text)
            self.names[kind] = match
            return
        if component.match_type not in (OF_DEFAULT, ANY_NAME):
            raise ApiError(Errors.INVALID_REQUEST, f"Unknown match type {component.match_type}")
        if match is not None:
            name = "MATCH_TYPE_DEFAULT" if component.match_type == OF_DEFAULT else "MATCH_TYPE_SPECIFIED"
            text = f"Request specified {name}, but also specified a match string."
            raise ApiError(Errors.INVALID_REQUEST, text)
        if component.match_type == OF_DEFAULT:
            self.names[kind] = None
        else:
            self.any_name[kind] = None

    def matches(self, entity: Entity) -> bool:
        if self._is_strict and len(entity) != len(self.names) + len(self.any_name):
            return False
        names = dict(entity)
        return all(kind in names and names[kind] == name for kind, name in self.names.items()) and all(
            kind in names for kind in self.any_name
        )
