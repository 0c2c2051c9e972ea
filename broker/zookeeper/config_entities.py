"""The configurations of topics and brokers in ZooKeeper."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from ...coordinator.metadata import configs
from ...coordinator.metadata.delta import MetadataDelta
from ...coordinator.metadata.state import BROKER, TOPIC, MetadataState
from ...protocol import zookeeper_paths as paths
from ...protocol.config_def import keys
from ...protocol.errors import ApiError, Errors
from ..config import relations
from ..config.config import Config
from ..controller.controller import MetadataController
from .broker_configs import BrokerConfigs
from .found import Entity, Values
from .kind import Changes

BROKERS_SINCE = (0, 10, 1)


async def _alter(metadata: MetadataController, of: tuple[int, str], changes: Changes) -> ApiError | None:
    operations = [(key, configs.DELETE if one is None else configs.SET, one) for key, one in changes.items()]
    alter = partial(configs.incremental_alter_configs, metadata.controller, [(*of, operations)])
    return (await metadata.submit(alter))[0]


class TopicEntities:
    """Topics, which the publisher and the adopter know by themselves: `all` has none."""

    def __init__(self, metadata: MetadataController, image: MetadataState, config: Config) -> None:
        self._metadata = metadata
        self._image = image
        self._keys = keys("topic", config.emulates)

    def all(self) -> tuple[Entity, ...]:
        return ()

    def changed(self, delta: MetadataDelta) -> Iterator[Entity]:
        yield from ((paths.TOPICS, name) for kind, name in delta.configs if kind == TOPIC)

    def is_shown(self, entity: Entity) -> bool:
        return entity[1] in self._image.topics

    def here(self, entity: Entity) -> Values:
        return dict(self._image.config_of(TOPIC, entity[1]))

    def taken(self, entity: Entity, key: str, value: str) -> str | None:
        known = self._keys.get(key)
        return value if known is not None and known.parse(value) is not None else None

    async def change(self, entity: Entity, changes: Changes) -> ApiError | None:
        return await _alter(self._metadata, (TOPIC, entity[1]), changes)


class BrokerEntities:
    """Brokers. `nodes`: the ids of this one. `check`: raises ApiError for values of one broker that its listeners
    cannot have. `forms`: the keys that they may have, and their passwords.
    """

    def __init__(
        self,
        metadata: MetadataController,
        image: MetadataState,
        config: Config,
        nodes: Mapping[int, object],
        release: paths.Number,
        check: Callable[[Changes], None],
    ) -> None:
        self._metadata = metadata
        self._image = image
        self._config = config
        self._nodes = nodes
        self._release = release
        self._check = check
        self._min_isr = str(config[configs.MIN_ISR])
        self.forms = BrokerConfigs(config, release)

    def all(self) -> Iterator[Entity]:
        yield from (_node(name) for kind, name in list(self._image.configs) if kind == BROKER)

    def changed(self, delta: MetadataDelta) -> Iterator[Entity]:
        yield from (_node(name) for kind, name in delta.configs if kind == BROKER)

    def is_shown(self, entity: Entity) -> bool:
        name = entity[1]
        is_own = name == paths.DEFAULT_ENTITY or (name.isdecimal() and int(name) in self._nodes)
        return is_own and self._release >= BROKERS_SINCE

    def here(self, entity: Entity) -> Values:
        of = _resource(entity)
        found = dict(self._image.config_of(*of))
        if not of[1] and found.get(configs.MIN_ISR) == self._min_isr:
            del found[configs.MIN_ISR]  # `records_for_elr`
        return found

    def taken(self, entity: Entity, key: str, value: str) -> str | None:
        known = self.forms.key(key, entity[1])
        return value if known is not None and known.parse(value) is not None else None

    async def change(self, entity: Entity, changes: Changes) -> ApiError | None:
        of = _resource(entity)
        wrong = self._refused(of, changes)
        return await _alter(self._metadata, of, changes) if wrong is None else wrong

    def _refused(self, of: tuple[int, str], changes: Changes) -> ApiError | None:
        """Returns what is wrong with values of a broker, or of all, beside those that are in force."""
        for node in self._nodes:
            found = dict(self._config.values)
            for resource in ((BROKER, ""), (BROKER, str(node))):
                dynamic = {**self._image.config_of(*resource), **(changes if resource == of else {})}
                for key, value in dynamic.items():
                    known = self.forms.key(key, resource[1] or paths.DEFAULT_ENTITY)
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


def _node(name: str) -> Entity:
    return paths.BROKERS, name or paths.DEFAULT_ENTITY


def _resource(entity: Entity) -> tuple[int, str]:
    return BROKER, "" if entity[1] == paths.DEFAULT_ENTITY else entity[1]
