"""What entities have in ZooKeeper, as the metadata has it: configurations of topics and brokers, quotas of users,
clients and addresses, SCRAM credentials of users, rights on resources, and delegation tokens. Each kind is an object
(`kind.py`), and its nodes have a form (`forms.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ...coordinator.metadata.delta import MetadataDelta
from ...coordinator.metadata.state import MetadataState
from ...protocol import zookeeper_paths as paths
from ...protocol.config_def import ConfigInvalid
from ...protocol.errors import ApiError
from ..config.config import Config
from ..config.tokens import token_room
from ..controller.controller import MetadataController
from . import client_entities, rights
from .client_entities import ClientEntities
from .config_entities import BrokerEntities, TopicEntities
from .found import Entity, Values
from .kind import Changes, Kind
from .rights import Rights
from .tokens import Tokens

TOKENS_SINCE = (1, 1)


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
        has_rights = bool(config["authorizer.class.name"])
        self.rights = Rights(metadata, image, release) if has_rights else None
        room = token_room(config) if release >= TOKENS_SINCE else None
        self.tokens = None if room is None else Tokens(metadata, image, room, release)
        self._brokers = BrokerEntities(metadata, image, config, nodes, release, check)
        self._kinds: dict[str, Kind] = dict.fromkeys(client_entities.KINDS, ClientEntities(metadata, image, release))
        self._kinds |= {paths.TOPICS: TopicEntities(metadata, image, config), paths.BROKERS: self._brokers}
        if self.rights is not None:
            self._kinds |= dict.fromkeys(rights.KINDS, self.rights)
        if self.tokens is not None:
            self._kinds[paths.TOKENS] = self.tokens

    # what is here

    def here(self, entity: Entity) -> Values:
        """Returns what an entity has, as far as ZooKeeper gets it; empty if it has nothing."""
        kind = self._kinds.get(entity[0])
        return {} if kind is None else _taken(kind, entity, kind.here(entity))

    def sealed(self, entity: Entity, here: Values, before: Values) -> Values:
        """Returns what `here` returned as ZooKeeper gets it, with encrypted passwords. `before`: what ZooKeeper has."""
        kind, name = entity
        return self._brokers.forms.sealed(name, here, before) if kind == paths.BROKERS else here

    def all_but_topics(self) -> Iterator[Entity]:
        """Yields the entities that have something, without topics; some more than once."""
        for kind in dict.fromkeys(self._kinds.values()):
            yield from kind.all()

    def changed(self, delta: MetadataDelta) -> Iterator[Entity]:
        """Yields the entities of which a commit has changed something."""
        for kind in dict.fromkeys(self._kinds.values()):
            yield from kind.changed(delta)

    # what is there

    def is_shown(self, entity: Entity) -> bool:
        """Whether the release has an entity in ZooKeeper, and it is one of this broker's."""
        kind = self._kinds.get(entity[0])
        return kind is not None and kind.is_shown(entity)

    def taken(self, entity: Entity, there: Values) -> Values:
        """Returns what this broker can have of what ZooKeeper has, as `here` would return it. The rest stays there:
        keys that it does not know, values that earlier releases took, and passwords that it cannot read.
        """
        kind, name = entity
        if kind == paths.BROKERS:
            opened = {key: self._brokers.forms.opened(name, key, value) for key, value in there.items()}
            there = {key: value for key, value in opened.items() if value is not None}
        return _taken(self._kinds[kind], entity, there) if kind in self._kinds else {}

    def learn(self, entity: Entity, there: Values) -> None:
        """Opens the passwords of what ZooKeeper has, in the session's thread."""
        kind, name = entity
        if kind == paths.BROKERS and self.is_shown(entity):
            self._brokers.forms.learn(name, there)

    async def change(self, entity: Entity, changes: Changes) -> ApiError | None:
        """Changes what an entity has; returns the error if that is refused. Fails with ApiError."""
        return await self._kinds[entity[0]].change(entity, changes)


def _taken(kind: Kind, entity: Entity, values: Values) -> Values:
    found: Values = {}
    for key, value in values.items():
        try:
            taken = kind.taken(entity, key, value)
        except (ConfigInvalid, ValueError, OverflowError):  # it stays in ZooKeeper, without effect here
            continue
        if taken is not None:
            found[key] = taken
    return found
