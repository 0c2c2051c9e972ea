"""What entities have in ZooKeeper, as the metadata has it: configurations of topics and brokers, quotas of users,
clients and addresses, SCRAM credentials of users, and rights on resources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from ...coordinator.metadata import configs, credentials, quotas
from ...coordinator.metadata.delta import MetadataDelta
from ...coordinator.metadata.quotas import CLIENT_ID, IP, USER, Alteration
from ...coordinator.metadata.state import BROKER, TOPIC, MetadataState, Quota
from ...coordinator.security.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    MECHANISMS,
    ScramCredential,
    credential_text,
    parse_credential,
)
from ...coordinator.shard import Decision
from ...protocol import zookeeper_paths as paths
from ...protocol.config_def import ConfigInvalid, keys
from ...protocol.errors import ApiError, Errors
from ..config import relations
from ..config.config import Config
from ..config.tokens import token_room
from ..controller.controller import MetadataController
from .broker_configs import BrokerConfigs
from .found import Entity, Values
from .rights import Rights, is_rights
from .tokens import Tokens, is_token

_OF_CLIENTS = {
    quotas.PRODUCER_BYTE_RATE,
    quotas.CONSUMER_BYTE_RATE,
    quotas.REQUEST_PERCENTAGE,
    quotas.CONTROLLER_MUTATION_RATE,
}
_OF_ADDRESSES = {quotas.CONNECTION_CREATION_RATE}
_KINDS = {TOPIC: paths.TOPICS, BROKER: paths.BROKERS}
SCRAM_SINCE, BROKERS_SINCE = (0, 10, 2), (0, 10, 1)
PREFIXED_SINCE, ADDRESSES_SINCE, TOKENS_SINCE = (2, 0), (2, 7), (1, 1)
Changes = Mapping[str, str | None]
"""Values by key; None where a key loses its value."""


class Entities:
    """`nodes`: the ids of this broker. `rights`: None without an authorizer, which ignores them as Kafka does.
    `tokens`: None where there are none. `check`: raises ApiError for values of one broker that its
    listeners cannot have.
    """

    def __init__(
        self,
        metadata: MetadataController,
        image: MetadataState,
        config: Config,
        nodes: Mapping[int, object],
        release: tuple[int, ...],
        check: Callable[[Changes], None],
    ) -> None:
        self._metadata = metadata
        self._image = image
        self._nodes = nodes
        self._release = release
        self.rights = Rights(metadata, image) if config["authorizer.class.name"] else None
        room = token_room(config) if release >= TOKENS_SINCE else None
        self.tokens = None if room is None else Tokens(metadata, image, room, release)
        self._of_topics = keys("topic", config.emulates)
        self._config = config
        self._min_isr = str(config[configs.MIN_ISR])
        self._of_brokers = BrokerConfigs(config, release)
        self._check = check

    # what is here

    def here(self, entity: Entity) -> Values:
        """Returns what an entity has, as far as ZooKeeper gets it; empty if it has nothing."""
        found = {key: self._taken(entity, key, value) for key, value in self._all(entity)}
        return {key: value for key, value in found.items() if value is not None}

    def sealed(self, entity: Entity, here: Values, before: Values) -> Values:
        """Returns what `here` returned as ZooKeeper gets it, with encrypted passwords. `before`: what ZooKeeper has."""
        kind, name = entity
        return self._of_brokers.sealed(name, here, before) if kind == paths.BROKERS else here

    def _all(self, entity: Entity) -> Iterator[tuple[str, str]]:
        kind, name = entity
        if is_rights(entity):
            yield from self.rights.here(entity).items() if self.rights is not None else ()
        elif is_token(entity):
            yield from self.tokens.here(entity).items() if self.tokens is not None else ()
        elif kind == paths.TOPICS:
            yield from self._image.config_of(TOPIC, name).items()
        elif kind == paths.BROKERS:
            own = () if name != paths.DEFAULT_ENTITY else ((configs.MIN_ISR, self._min_isr),)  # `records_for_elr`
            config = self._image.config_of(BROKER, "" if name == paths.DEFAULT_ENTITY else name)
            yield from (one for one in config.items() if one not in own)
        else:
            owner = quota_entity(kind, name)
            for key in sorted(_OF_CLIENTS | _OF_ADDRESSES):
                limit = self._image.quotas.get(Quota(owner, key))
                if limit is not None:
                    yield key, quota_text(limit.value)
            for mechanism in MECHANISMS.values():
                found = self._image.credentials.get((_user(entity), mechanism.number))
                if found is not None:
                    keys_of = found.salt, found.stored_key, found.server_key, found.iterations
                    yield mechanism.name, credential_text(ScramCredential(*keys_of))

    def all_but_topics(self) -> Iterator[Entity]:
        """Yields the entities that have something, without topics; some more than once."""
        yield from map(quota_node, list(self._image.quotas))
        yield from (_user_node(user) for user, _ in list(self._image.credentials))
        yield from (_config_node(kind, name) for kind, name in list(self._image.configs) if kind == BROKER)
        yield from self.rights.all() if self.rights is not None else ()
        yield from self.tokens.all() if self.tokens is not None else ()

    def changed(self, delta: MetadataDelta) -> Iterator[Entity]:
        """Yields the entities of which a commit has changed something."""
        yield from map(quota_node, delta.quotas)
        yield from map(_user_node, delta.credentials)
        yield from (_config_node(kind, name) for kind, name in delta.configs if kind in _KINDS)
        yield from self.rights.changed(delta) if self.rights is not None else ()
        yield from self.tokens.changed(delta) if self.tokens is not None else ()

    # what is there

    def is_shown(self, entity: Entity) -> bool:
        """Whether the release has an entity in ZooKeeper, and it is one of this broker's."""
        kind, name = entity
        if kind == paths.TOPICS:
            return name in self._image.topics
        if kind == paths.BROKERS:
            is_own = name == paths.DEFAULT_ENTITY or (name.isdecimal() and int(name) in self._nodes)
            return is_own and self._release >= BROKERS_SINCE
        if is_rights(entity):
            is_node = paths.is_node_name(name.partition("/")[2])
            is_known = kind == paths.ACLS or self._release >= PREFIXED_SINCE
            return self.rights is not None and is_node and is_known
        if is_token(entity):
            return self.tokens is not None
        return kind in (paths.USERS, paths.CLIENTS) or (kind == paths.IPS and self._release >= ADDRESSES_SINCE)

    def taken(self, entity: Entity, there: Values) -> Values:
        """Returns what this broker can have of what ZooKeeper has, as `here` would return it. The rest stays there:
        keys that it does not know, values that earlier releases took, and passwords that it cannot read.
        """
        kind, name = entity
        found: Values = {}
        for key, value in there.items():
            opened = self._of_brokers.opened(name, key, value) if kind == paths.BROKERS else value
            taken = None if opened is None else self._taken(entity, key, opened)
            if taken is not None:
                found[key] = taken
        return found

    def learn(self, entity: Entity, there: Values) -> None:
        """Opens the passwords of what ZooKeeper has, in the session's thread."""
        kind, name = entity
        if kind == paths.BROKERS and self.is_shown(entity):
            self._of_brokers.learn(name, there)

    def _taken(self, entity: Entity, key: str, value: str) -> str | None:
        kind, name = entity
        try:
            if is_rights(entity):
                return "" if self.rights is not None and self.rights.is_known(entity, key) else None
            if is_token(entity):
                return value if self.tokens is not None and self.tokens.is_known(entity, value) else None
            if kind in (paths.TOPICS, paths.BROKERS):
                known = self._of_topics.get(key) if kind == paths.TOPICS else self._of_brokers.key(key, name)
                return value if known is not None and known.parse(value) is not None else None
            if key in MECHANISMS:
                return self._credential(entity, value)
            limits = _OF_ADDRESSES if kind == paths.IPS else _OF_CLIENTS
            return quota_text(float(value)) if key in limits else None
        except (ConfigInvalid, ValueError, OverflowError):
            return None

    def _credential(self, entity: Entity, text: str) -> str | None:
        """Raises ValueError."""
        found = parse_credential(text)
        is_valid = ITERATIONS_MIN <= found.iterations <= ITERATIONS_MAX
        return credential_text(found) if is_valid and _user(entity) and self._release >= SCRAM_SINCE else None

    async def change(self, entity: Entity, changes: Changes) -> ApiError | None:
        """Changes what an entity has; returns the error if that is refused. Fails with ApiError."""
        kind, name = entity
        if self.rights is not None and is_rights(entity):
            return await self.rights.change(entity, changes)
        if self.tokens is not None and is_token(entity):
            return await self.tokens.change(entity, changes)
        if kind in (paths.TOPICS, paths.BROKERS):
            operations = [(key, configs.DELETE if one is None else configs.SET, one) for key, one in changes.items()]
            of = (TOPIC, name)
            if kind == paths.BROKERS:
                of = (BROKER, "" if name == paths.DEFAULT_ENTITY else name)
                wrong = self._refused(of, changes)
                if wrong is not None:
                    return wrong
            alter = partial(configs.incremental_alter_configs, self._metadata.controller, [(*of, operations)])
            return (await self._metadata.submit(alter))[0]
        of_user = {key: one for key, one in changes.items() if key in MECHANISMS}
        if of_user:
            found = {key: None if one is None else parse_credential(one) for key, one in of_user.items()}
            await self._metadata.submit(partial(credentials.put, self._metadata.controller, _user(entity), found))
        limits = {key: None if one is None else float(one) for key, one in changes.items() if key not in MECHANISMS}
        return await self._limit(quota_entity(kind, name), limits) if limits else None

    def _refused(self, of: tuple[int, str], changes: Changes) -> ApiError | None:
        """Returns what is wrong with values of a broker, or of all, beside those that are in force."""
        for node in self._nodes:
            found = dict(self._config.values)
            for resource in ((BROKER, ""), (BROKER, str(node))):
                dynamic = {**self._image.config_of(*resource), **(changes if resource == of else {})}
                for key, value in dynamic.items():
                    known = self._of_brokers.key(key, resource[1] or paths.DEFAULT_ENTITY)
                    if value is not None and known is not None and key == known.name:
                        found[key] = known.parse(value)
            wrong = relations.refused(found)
            if wrong is not None:
                return ApiError(Errors.INVALID_CONFIG, wrong[1])
        try:
            if of[1]:
                self._check(changes)
        except ApiError as error:
            return error
        return None

    async def _limit(self, entity: quotas.Entity, limits: dict[str, float | None]) -> ApiError | None:
        def alter() -> Decision[dict[quotas.Entity, ApiError | None]]:
            return quotas.alter(self._metadata.controller, [Alteration(entity, limits, False)], ())

        return next(iter((await self._metadata.submit(alter)).values()))


def _config_node(kind: int, name: str) -> Entity:
    return _KINDS[kind], name or paths.DEFAULT_ENTITY


def _user_node(user: str) -> Entity:
    return paths.USERS, paths.sanitized(user)


def quota_node(quota: Quota) -> Entity:
    """Returns the entity in ZooKeeper that a quota belongs to."""
    named = {kind: _node_name(kind, name) for kind, name in quota.entity}
    if set(named) == {USER, CLIENT_ID}:
        return paths.USERS, f"{named[USER]}/{paths.CLIENTS}/{named[CLIENT_ID]}"
    ((kind, name),) = named.items()
    return {USER: paths.USERS, CLIENT_ID: paths.CLIENTS, IP: paths.IPS}[kind], name


def _node_name(kind: str, name: str | None) -> str:
    """Returns the name of a user's, client's or address's node. Addresses are as they are."""
    if name is None:
        return paths.DEFAULT_ENTITY
    return name if kind == IP else paths.sanitized(name)


def quota_text(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


def _named(part: str) -> str | None:
    return None if part == paths.DEFAULT_ENTITY else paths.desanitized(part)


def quota_entity(kind: str, name: str) -> quotas.Entity:
    """Returns the entity of client quotas that a node's name says, its parts in order."""
    if kind == paths.IPS:
        return ((IP, None if name == paths.DEFAULT_ENTITY else name),)
    if kind == paths.CLIENTS:
        return ((CLIENT_ID, _named(name)),)
    user, separator, client = name.partition(f"/{paths.CLIENTS}/")
    if separator:
        return ((CLIENT_ID, _named(client)), (USER, _named(user)))
    return ((USER, _named(user)),)


def _user(entity: Entity) -> str:
    """Returns the user that may have credentials; empty for what is no user."""
    kind, name = entity
    return paths.desanitized(name) if kind == paths.USERS and "/" not in name and name != paths.DEFAULT_ENTITY else ""
