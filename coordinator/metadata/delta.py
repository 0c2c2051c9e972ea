"""The changes of the metadata by a commit.

The records of a commit are replayed into one `MetadataDelta`, which then shows them all in the image. Each watcher of
the metadata gets the delta once, after that: forty configuration records are one change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ...protocol import messages
from .staged import Staged
from .state import BROKER, MetadataState, NewPartitions, Quota, quota_of


class RemovedTopic(NamedTuple):
    name: str
    id: bytes
    partitions: int  # its number of partitions


class MetadataDelta:
    """The changes of an image. Topics that were created and deleted within one commit are not among them."""

    def __init__(self, image: MetadataState) -> None:
        self.image = image
        self._staged = Staged(image)
        # applied before everything else: a new topic may have the name of a removed one
        self.removed: list[RemovedTopic] = []
        self.created: dict[bytes, str] = {}  # names of topics by id
        self.new_partitions: dict[tuple[bytes, int], None] = {}
        self.changed_partitions: dict[tuple[bytes, int], None] = {}
        self.configs: dict[tuple[int, str], None] = {}  # resource types and names
        self.brokers: dict[int, None] = {}  # ids of brokers whose registrations were made, changed or removed
        self.features: dict[str, None] = {}
        self.acls: dict[bytes, None] = {}  # ids of access control entries that were created or deleted
        self.quotas: dict[Quota, None] = {}  # client quotas that were set or removed
        self.credentials: dict[str, None] = {}  # users whose SCRAM credentials were set or removed
        self.tokens: dict[str, None] = {}  # ids of delegation tokens that were created, changed or removed

    def replay(self, record: object) -> None:
        """Records the change by a record, which is not in the image yet."""
        note = _NOTES.get(type(record).__name__)
        if note is not None:
            note(self, record)
        self._staged.apply(record)

    def show(self) -> None:
        """Makes the changes in the image, all at once."""
        self._staged.show()

    def has_config_of(self, kind: int) -> bool:
        """Whether a configuration of this resource type changed."""
        return any(changed == kind for changed, _ in self.configs)

    @property
    def changes_all_topics(self) -> bool:
        """Whether a configuration changed that can affect the settings of every topic."""
        return self.has_config_of(BROKER)

    def sized_topics(self) -> Iterator[str]:
        """Yields the names of topics that were removed, created or got more partitions; each once."""
        names = {topic.name: None for topic in self.removed}
        names |= {self.image.topic_names[topic_id]: None for topic_id, _ in self.new_partitions}
        return iter(names)

    # recording changes, before the record is applied

    def _topic(self, r: messages.TopicRecord) -> None:
        self.created[r.topic_id] = r.name

    def _removed_topic(self, r: messages.RemoveTopicRecord) -> None:
        name = self._staged.topic_names.get(r.topic_id)
        if name is None:
            return
        count = self._staged.partition_counts.get(r.topic_id, 0)
        for noted in (self.new_partitions, self.changed_partitions):
            if noted:
                for index in range(count):
                    noted.pop((r.topic_id, index), None)
        if self.created.pop(r.topic_id, None) is None:
            self.removed.append(RemovedTopic(name, r.topic_id, count))

    def _partition(self, r: messages.PartitionRecord) -> None:
        self.new_partitions[r.topic_id, r.partition_id] = None

    def _new_partitions(self, new: NewPartitions) -> None:
        self.new_partitions.update(dict.fromkeys((one.topic_id, one.index) for one in new.partitions))

    def _partition_change(self, r: messages.PartitionChangeRecord) -> None:
        if (r.topic_id, r.partition_id) in self._staged.partitions:
            self.changed_partitions[r.topic_id, r.partition_id] = None

    def _broker(
        self,
        r: messages.RegisterBrokerRecord | messages.BrokerRegistrationChangeRecord | messages.UnregisterBrokerRecord,
    ) -> None:
        self.brokers[r.broker_id] = None

    def _clear_elr(self, r: messages.ClearElrRecord) -> None:
        self.changed_partitions |= {(one.topic_id, one.index): None for one in self._staged.with_elr(r)}

    def _config(self, r: messages.ConfigRecord) -> None:
        self.configs[r.resource_type, r.resource_name] = None

    def _feature(self, r: messages.FeatureLevelRecord) -> None:
        self.features[r.name] = None

    def _acl(self, r: messages.AccessControlEntryRecord | messages.RemoveAccessControlEntryRecord) -> None:
        self.acls[r.id] = None

    def _quota(self, r: messages.ClientQuotaRecord) -> None:
        self.quotas[quota_of(r)] = None

    def _credential(self, r: messages.UserScramCredentialRecord | messages.RemoveUserScramCredentialRecord) -> None:
        self.credentials[r.name] = None

    def _token(self, r: messages.DelegationTokenRecord | messages.RemoveDelegationTokenRecord) -> None:
        self.tokens[r.token_id] = None


_NOTES: dict[str, Callable[[MetadataDelta, Any], None]] = {
    "TopicRecord": MetadataDelta._topic,
    "RemoveTopicRecord": MetadataDelta._removed_topic,
    "PartitionRecord": MetadataDelta._partition,
    "NewPartitions": MetadataDelta._new_partitions,
    "PartitionChangeRecord": MetadataDelta._partition_change,
    "RegisterBrokerRecord": MetadataDelta._broker,
    "BrokerRegistrationChangeRecord": MetadataDelta._broker,
    "UnregisterBrokerRecord": MetadataDelta._broker,
    "ClearElrRecord": MetadataDelta._clear_elr,
    "ConfigRecord": MetadataDelta._config,
    "FeatureLevelRecord": MetadataDelta._feature,
    "AccessControlEntryRecord": MetadataDelta._acl,
    "RemoveAccessControlEntryRecord": MetadataDelta._acl,
    "ClientQuotaRecord": MetadataDelta._quota,
    "UserScramCredentialRecord": MetadataDelta._credential,
    "RemoveUserScramCredentialRecord": MetadataDelta._credential,
    "DelegationTokenRecord": MetadataDelta._token,
    "RemoveDelegationTokenRecord": MetadataDelta._token,
}
