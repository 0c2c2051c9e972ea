"""The settings in force: the static configuration, overridden by the metadata's configurations of brokers,
topics and groups.

Values are parsed on first use, and dropped when a metadata commit changes them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, MutableMapping
from typing import Any

from ..coordinator.metadata.configs import group_bounds
from ..coordinator.metadata.delta import MetadataDelta
from ..coordinator.metadata.state import BROKER, GROUP, TOPIC, MetadataState
from ..protocol.config_def import (
    ConfigInvalid,
    ConfigKey,
    keys,
    keys_in_force,
    message_format,
    release_number,
    topic_synonyms,
)
from ..storage.settings import LogSettings
from .config.config import Config, converted
from .config.listener_values import ListenerValues
from .internal_topics import is_internal

logger = logging.getLogger("ottla.config")
LONG_MAX = 2**63 - 1


class Settings:
    """Values of broker keys, topic keys and group keys. `config`: the static configuration."""

    def __init__(self, config: Config, image: MetadataState) -> None:
        self.config = config
        self.image = image
        self._topic_defaults = config.topic_defaults()
        self._values: dict[str, object] = {}  # of broker keys
        self._dynamic_defaults: dict[str, str] | None = None
        self._of_topics: dict[str, tuple[LogSettings, dict[str, Any]]] = {}
        self._of_nodes: dict[int | None, Settings] = {}  # those of other nodes than that of `config`
        self._of_groups: dict[tuple[str, str], Any] = {}

    def value(self, name: str) -> Any:
        """Returns the value of a broker key in force: the dynamic one, if there is one."""
        if name not in self._values:
            found = parsed_values(self.config.broker_keys, {name: self._dynamic_configs().get(name)})
            self._values[name] = found.get(name, self.config[name])
        return self._values[name]

    def of_node(self, config: Config) -> Settings:
        """Returns the settings of a node: its own dynamic configurations are over those of all. `config`: its own."""
        if config.node_id == self.config.node_id:
            return self
        found = self._of_nodes.get(config.node_id)
        if found is None:
            found = self._of_nodes[config.node_id] = Settings(config, self.image)
        return found

    def at(self, node: int | None) -> Settings:
        """Returns the settings of a node that runs here, or those of the first one."""
        return self._of_nodes.get(node, self)

    def rate(self, name: str) -> int | None:
        """Returns a rate that only dynamic configurations have, in bytes per second; None where there is no limit."""
        text = self._dynamic_configs().get(name)
        return None if text is None else int(text)

    def of_listener(self, listener: str, changes: Mapping[str, str | None] | None = None) -> ListenerValues:
        """Returns the values of broker keys in force for one listener. `changes`: values that this broker would have
        instead, None for none.
        """
        own = {**self.image.config_of(BROKER, str(self.config.node_id)), **(changes or {})}
        dynamic = {name: text for name, text in own.items() if text is not None}
        given = {**self.config.given, **self.image.config_of(BROKER, ""), **dynamic}
        return ListenerValues(listener, given, self.value, self.config.broker_keys)

    def _dynamic_configs(self) -> dict[str, str]:
        """Returns the dynamic configs of this broker, over those of all brokers."""
        return {**self.image.config_of(BROKER, ""), **self.image.config_of(BROKER, str(self.config.node_id))}

    # topics

    def of_topic(self, name: str) -> dict[str, Any]:
        """Returns the parsed values of all keys of a topic."""
        return self._parsed(name)[1]

    def of_log(self, topic: str) -> LogSettings:
        """Returns the settings of the logs of a topic's partitions."""
        return self._parsed(topic)[0]

    def _parsed(self, name: str) -> tuple[LogSettings, dict[str, Any]]:
        cached = self._of_topics.get(name)
        if cached is not None:
            return cached
        own, release = self.image.config_of(TOPIC, name), self.config.emulates
        if not own and name and not is_internal(name):
            made = self._of_topics[name] = self._parsed("")  # topics without their own configuration share these values
            return made
        values = {}
        dynamic = self.dynamic_topic_defaults()
        for key in keys_in_force("topic", release).values():
            default = self._topic_defaults.get(key.name, key.default)
            values[key.name] = _first_valid(key, own.get(key.name), dynamic.get(key.name), default)
        if values["internal.segment.bytes"] is not None:
            values["segment.bytes"] = values["internal.segment.bytes"]
        if release is not None:
            _settle_timestamps(values)
        values["cleanup.policy"] = tuple(values["cleanup.policy"])
        settings = LogSettings.of(values)
        if self.config["ottla.flush.ms.holds.acks"] and not is_internal(name):
            settings = settings._replace(waits_for_flush_ms=settings.flush_ms < LONG_MAX)
        if release is not None and not is_internal(name):
            settings = settings._replace(message_format=self._message_format(values.get("message.format.version")))
        made = self._of_topics[name] = (settings, values)
        return made

    def _message_format(self, version: str | None) -> int:
        """Returns the version of messages in a topic of an emulated release. `version`: the topic's
        `message.format.version`, which counts until brokers speak the protocol of 3.0; None before there was one.
        """
        spoken = self.config.values.get("inter.broker.protocol.version")
        if version is None or spoken is None or (release_number(spoken) or ()) >= (3, 0):
            return message_format(f"{self.config.emulates}.0")
        return message_format(version)

    def dynamic_topic_defaults(self) -> dict[str, str]:
        """Returns the topic defaults set by dynamic broker configs."""
        if self._dynamic_defaults is None:
            dynamic = self._dynamic_configs()
            self._dynamic_defaults = {
                key: converted(name, dynamic[name])
                for key, names in topic_synonyms().items()
                for name in names
                if name in dynamic
            }
        return self._dynamic_defaults

    # groups

    def of_group(self, group_id: str, name: str) -> Any:
        """Returns a group's own value within the broker's bounds, or the broker's value (KIP-1240)."""
        found = self._of_groups.get((group_id, name))
        if found is None:
            found = self._of_groups[group_id, name] = self._group_value(group_id, name)
        return found

    def _group_value(self, group_id: str, name: str) -> Any:
        release, broker_key = self.config.emulates, f"group.{name}"
        own = keys_in_force("group", release)[name]
        general = self.value(broker_key) if broker_key in keys("broker") else own.parse(own.default)
        text = self.image.config_of(GROUP, group_id).get(name)
        if text is None:
            return general
        try:
            value = own.parse(text)
        except ConfigInvalid:
            return general
        bounds = group_bounds(name)
        if bounds is not None:
            value = min(max(value, self.value(bounds[0])), self.value(bounds[1]))
        return value

    # changes

    def metadata_changed(self, delta: MetadataDelta) -> None:
        """Drops the settings that depend on changed configurations."""
        for node in self._of_nodes.values():
            node.metadata_changed(delta)
        if delta.changes_all_topics:
            self._of_topics.clear()
            self._values.clear()
            self._dynamic_defaults = None
        if delta.has_config_of(GROUP) or delta.has_config_of(BROKER):
            self._of_groups.clear()
        for kind, name in delta.configs:
            if kind == TOPIC:
                self._of_topics.pop(name, None)
        for topic in delta.removed:
            self._of_topics.pop(topic.name, None)


def parsed_values(known: Mapping[str, ConfigKey], texts: Mapping[str, str | None]) -> dict[str, object]:
    """Returns the values of metadata that keys take."""
    found = {name: _taken(known[name], text) for name, text in texts.items() if name in known}
    return {name: value for name, value in found.items() if value is not None}


def _taken(key: ConfigKey, text: str | None) -> object:
    """Returns the value, None for no text. The release in force may refuse what an earlier one, which was emulated, has
    taken: that has no effect.
    """
    try:
        return key.parse(text)
    except ConfigInvalid as error:
        logger.warning("%s; it has no effect", error)
        return None


def _first_valid(key: ConfigKey, *texts: str | None) -> Any:
    """Returns the value of the first text that the key takes, else that of its default."""
    for text in texts:
        value = _taken(key, text)
        if value is not None:
            return value
    return key.parse(key.default)


def _settle_timestamps(values: MutableMapping[str, object]) -> None:
    """Applies `message.timestamp.difference.max.ms`, which releases before 4.0 had, where the two keys that are there
    instead since 3.6 have no value of their own (KIP-937).
    """
    difference = values.get("message.timestamp.difference.max.ms")
    for name in ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms"):
        if difference is not None and values[name] == LONG_MAX:
            values[name] = difference
