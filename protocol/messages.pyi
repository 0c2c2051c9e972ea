# Made by `make stubs` from the schemas.
from typing import Any

from . import schema as _schema

class Struct:
    __slots__: tuple[str, ...]

def struct_class(schema: _schema.Schema, struct: _schema.StructSchema) -> type: ...
def default_of(schema: _schema.Schema, f: _schema.FieldSchema) -> Any: ...

class AbortTransactionRecord(Struct):
    reason: str | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, reason: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class AbortedTxn(Struct):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, producer_id: int = ..., first_offset: int = ..., last_offset: int = ..., last_stable_offset: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class AccessControlEntryRecord(Struct):
    id: bytes
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, id: bytes = ..., resource_type: int = ..., resource_name: str = ..., pattern_type: int = ..., principal: str = ..., host: str = ..., operation: int = ..., permission_type: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class AddOffsetsToTxnRequest(Struct):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    group_id: str
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, transactional_id: str = ..., producer_id: int = ..., producer_epoch: int = ..., group_id: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class AddOffsetsToTxnResponse(Struct):
    throttle_time_ms: int
    error_code: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class AddPartitionsToTxnRequest(Struct):
    class AddPartitionsToTxnTopic(Struct):
        name: str
        partitions: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., partitions: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class AddPartitionsToTxnTransaction(Struct):
        transactional_id: str
        producer_id: int
        producer_epoch: int
        verify_only: bool
        topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, transactional_id: str = ..., producer_id: int = ..., producer_epoch: int = ..., verify_only: bool = ..., topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    transactions: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction]
    v3_and_below_transactional_id: str
    v3_and_below_producer_id: int
    v3_and_below_producer_epoch: int
    v3_and_below_topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, transactions: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction] = ..., v3_and_below_transactional_id: str = ..., v3_and_below_producer_id: int = ..., v3_and_below_producer_epoch: int = ..., v3_and_below_topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class AddPartitionsToTxnResponse(Struct):
    class AddPartitionsToTxnPartitionResult(Struct):
        partition_index: int
        partition_error_code: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., partition_error_code: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class AddPartitionsToTxnTopicResult(Struct):
        name: str
        results_by_partition: list[AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., results_by_partition: list[AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class AddPartitionsToTxnResult(Struct):
        transactional_id: str
        topic_results: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, transactional_id: str = ..., topic_results: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    results_by_transaction: list[AddPartitionsToTxnResponse.AddPartitionsToTxnResult]
    results_by_topic_v3_and_below: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., results_by_transaction: list[AddPartitionsToTxnResponse.AddPartitionsToTxnResult] = ..., results_by_topic_v3_and_below: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class AddRaftVoterRequest(Struct):
    class Listener(Struct):
        name: str
        host: str
        port: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., host: str = ..., port: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    cluster_id: str | None
    timeout_ms: int
    voter_id: int
    voter_directory_id: bytes
    listeners: list[AddRaftVoterRequest.Listener]
    ack_when_committed: bool
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, cluster_id: str | None = ..., timeout_ms: int = ..., voter_id: int = ..., voter_directory_id: bytes = ..., listeners: list[AddRaftVoterRequest.Listener] = ..., ack_when_committed: bool = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class AddRaftVoterResponse(Struct):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class AllocateProducerIdsRequest(Struct):
    broker_id: int
    broker_epoch: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, broker_id: int = ..., broker_epoch: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class AllocateProducerIdsResponse(Struct):
    throttle_time_ms: int
    error_code: int
    producer_id_start: int
    producer_id_len: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., producer_id_start: int = ..., producer_id_len: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class AlterClientQuotasRequest(Struct):
    class EntityData(Struct):
        entity_type: str
        entity_name: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, entity_type: str = ..., entity_name: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class OpData(Struct):
        key: str
        value: float
        remove: bool
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, key: str = ..., value: float = ..., remove: bool = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class EntryData(Struct):
        entity: list[AlterClientQuotasRequest.EntityData]
        ops: list[AlterClientQuotasRequest.OpData]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, entity: list[AlterClientQuotasRequest.EntityData] = ..., ops: list[AlterClientQuotasRequest.OpData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    entries: list[AlterClientQuotasRequest.EntryData]
    validate_only: bool
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, entries: list[AlterClientQuotasRequest.EntryData] = ..., validate_only: bool = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class AlterClientQuotasResponse(Struct):
    class EntityData(Struct):
        entity_type: str
        entity_name: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, entity_type: str = ..., entity_name: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class EntryData(Struct):
        error_code: int
        error_message: str | None
        entity: list[AlterClientQuotasResponse.EntityData]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, error_code: int = ..., error_message: str | None = ..., entity: list[AlterClientQuotasResponse.EntityData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    entries: list[AlterClientQuotasResponse.EntryData]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., entries: list[AlterClientQuotasResponse.EntryData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class AlterConfigsRequest(Struct):
    class AlterableConfig(Struct):
        name: str
        value: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., value: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class AlterConfigsResource(Struct):
        resource_type: int
        resource_name: str
        configs: list[AlterConfigsRequest.AlterableConfig]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, resource_type: int = ..., resource_name: str = ..., configs: list[AlterConfigsRequest.AlterableConfig] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    resources: list[AlterConfigsRequest.AlterConfigsResource]
    validate_only: bool
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, resources: list[AlterConfigsRequest.AlterConfigsResource] = ..., validate_only: bool = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class AlterConfigsResponse(Struct):
    class AlterConfigsResourceResponse(Struct):
        error_code: int
        error_message: str | None
        resource_type: int
        resource_name: str
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, error_code: int = ..., error_message: str | None = ..., resource_type: int = ..., resource_name: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    responses: list[AlterConfigsResponse.AlterConfigsResourceResponse]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., responses: list[AlterConfigsResponse.AlterConfigsResourceResponse] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class AlterPartitionReassignmentsRequest(Struct):
    class ReassignablePartition(Struct):
        partition_index: int
        replicas: list[int] | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., replicas: list[int] | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class ReassignableTopic(Struct):
        name: str
        partitions: list[AlterPartitionReassignmentsRequest.ReassignablePartition]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., partitions: list[AlterPartitionReassignmentsRequest.ReassignablePartition] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    timeout_ms: int
    allow_replication_factor_change: bool
    topics: list[AlterPartitionReassignmentsRequest.ReassignableTopic]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, timeout_ms: int = ..., allow_replication_factor_change: bool = ..., topics: list[AlterPartitionReassignmentsRequest.ReassignableTopic] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class AlterPartitionReassignmentsResponse(Struct):
    class ReassignablePartitionResponse(Struct):
        partition_index: int
        error_code: int
        error_message: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., error_code: int = ..., error_message: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class ReassignableTopicResponse(Struct):
        name: str
        partitions: list[AlterPartitionReassignmentsResponse.ReassignablePartitionResponse]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., partitions: list[AlterPartitionReassignmentsResponse.ReassignablePartitionResponse] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    allow_replication_factor_change: bool
    error_code: int
    error_message: str | None
    responses: list[AlterPartitionReassignmentsResponse.ReassignableTopicResponse]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., allow_replication_factor_change: bool = ..., error_code: int = ..., error_message: str | None = ..., responses: list[AlterPartitionReassignmentsResponse.ReassignableTopicResponse] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class AlterPartitionRequest(Struct):
    class BrokerState(Struct):
        broker_id: int
        broker_epoch: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, broker_id: int = ..., broker_epoch: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class PartitionData(Struct):
        partition_index: int
        leader_epoch: int
        new_isr: list[int]
        new_isr_with_epochs: list[AlterPartitionRequest.BrokerState]
        leader_recovery_state: int
        partition_epoch: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., leader_epoch: int = ..., new_isr: list[int] = ..., new_isr_with_epochs: list[AlterPartitionRequest.BrokerState] = ..., leader_recovery_state: int = ..., partition_epoch: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TopicData(Struct):
        topic_id: bytes
        partitions: list[AlterPartitionRequest.PartitionData]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id: bytes = ..., partitions: list[AlterPartitionRequest.PartitionData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    broker_id: int
    broker_epoch: int
    topics: list[AlterPartitionRequest.TopicData]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, broker_id: int = ..., broker_epoch: int = ..., topics: list[AlterPartitionRequest.TopicData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class AlterPartitionResponse(Struct):
    class PartitionData(Struct):
        partition_index: int
        error_code: int
        leader_id: int
        leader_epoch: int
        isr: list[int]
        leader_recovery_state: int
        partition_epoch: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., error_code: int = ..., leader_id: int = ..., leader_epoch: int = ..., isr: list[int] = ..., leader_recovery_state: int = ..., partition_epoch: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TopicData(Struct):
        topic_id: bytes
        partitions: list[AlterPartitionResponse.PartitionData]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id: bytes = ..., partitions: list[AlterPartitionResponse.PartitionData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    topics: list[AlterPartitionResponse.TopicData]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., topics: list[AlterPartitionResponse.TopicData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class AlterReplicaLogDirsRequest(Struct):
    class AlterReplicaLogDirTopic(Struct):
        name: str
        partitions: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., partitions: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class AlterReplicaLogDir(Struct):
        path: str
        topics: list[AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, path: str = ..., topics: list[AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    dirs: list[AlterReplicaLogDirsRequest.AlterReplicaLogDir]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, dirs: list[AlterReplicaLogDirsRequest.AlterReplicaLogDir] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class AlterReplicaLogDirsResponse(Struct):
    class AlterReplicaLogDirPartitionResult(Struct):
        partition_index: int
        error_code: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., error_code: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class AlterReplicaLogDirTopicResult(Struct):
        topic_name: str
        partitions: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_name: str = ..., partitions: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    results: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., results: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class AlterShareGroupOffsetsRequest(Struct):
    class AlterShareGroupOffsetsRequestPartition(Struct):
        partition_index: int
        start_offset: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., start_offset: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class AlterShareGroupOffsetsRequestTopic(Struct):
        topic_name: str
        partitions: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_name: str = ..., partitions: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    group_id: str
    topics: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., topics: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class AlterShareGroupOffsetsResponse(Struct):
    class AlterShareGroupOffsetsResponsePartition(Struct):
        partition_index: int
        error_code: int
        error_message: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., error_code: int = ..., error_message: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class AlterShareGroupOffsetsResponseTopic(Struct):
        topic_name: str
        topic_id: bytes
        partitions: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_name: str = ..., topic_id: bytes = ..., partitions: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    responses: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., responses: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class AlterUserScramCredentialsRequest(Struct):
    class ScramCredentialDeletion(Struct):
        name: str
        mechanism: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., mechanism: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class ScramCredentialUpsertion(Struct):
        name: str
        mechanism: int
        iterations: int
        salt: bytes
        salted_password: bytes
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., mechanism: int = ..., iterations: int = ..., salt: bytes = ..., salted_password: bytes = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    deletions: list[AlterUserScramCredentialsRequest.ScramCredentialDeletion]
    upsertions: list[AlterUserScramCredentialsRequest.ScramCredentialUpsertion]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, deletions: list[AlterUserScramCredentialsRequest.ScramCredentialDeletion] = ..., upsertions: list[AlterUserScramCredentialsRequest.ScramCredentialUpsertion] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class AlterUserScramCredentialsResponse(Struct):
    class AlterUserScramCredentialsResult(Struct):
        user: str
        error_code: int
        error_message: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, user: str = ..., error_code: int = ..., error_message: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    results: list[AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., results: list[AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ApiVersionsRequest(Struct):
    client_software_name: str
    client_software_version: str
    cluster_id: str | None
    node_id: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, client_software_name: str = ..., client_software_version: str = ..., cluster_id: str | None = ..., node_id: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ApiVersionsResponse(Struct):
    class ApiVersion(Struct):
        api_key: int
        min_version: int
        max_version: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, api_key: int = ..., min_version: int = ..., max_version: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class SupportedFeatureKey(Struct):
        name: str
        min_version: int
        max_version: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., min_version: int = ..., max_version: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class FinalizedFeatureKey(Struct):
        name: str
        max_version_level: int
        min_version_level: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., max_version_level: int = ..., min_version_level: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    error_code: int
    api_keys: list[ApiVersionsResponse.ApiVersion]
    throttle_time_ms: int
    supported_features: list[ApiVersionsResponse.SupportedFeatureKey]
    finalized_features_epoch: int
    finalized_features: list[ApiVersionsResponse.FinalizedFeatureKey]
    zk_migration_ready: bool
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, error_code: int = ..., api_keys: list[ApiVersionsResponse.ApiVersion] = ..., throttle_time_ms: int = ..., supported_features: list[ApiVersionsResponse.SupportedFeatureKey] = ..., finalized_features_epoch: int = ..., finalized_features: list[ApiVersionsResponse.FinalizedFeatureKey] = ..., zk_migration_ready: bool = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class AssignReplicasToDirsRequest(Struct):
    class PartitionData(Struct):
        partition_index: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TopicData(Struct):
        topic_id: bytes
        partitions: list[AssignReplicasToDirsRequest.PartitionData]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id: bytes = ..., partitions: list[AssignReplicasToDirsRequest.PartitionData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class DirectoryData(Struct):
        id: bytes
        topics: list[AssignReplicasToDirsRequest.TopicData]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, id: bytes = ..., topics: list[AssignReplicasToDirsRequest.TopicData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    broker_id: int
    broker_epoch: int
    directories: list[AssignReplicasToDirsRequest.DirectoryData]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, broker_id: int = ..., broker_epoch: int = ..., directories: list[AssignReplicasToDirsRequest.DirectoryData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class AssignReplicasToDirsResponse(Struct):
    class PartitionData(Struct):
        partition_index: int
        error_code: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., error_code: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TopicData(Struct):
        topic_id: bytes
        partitions: list[AssignReplicasToDirsResponse.PartitionData]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id: bytes = ..., partitions: list[AssignReplicasToDirsResponse.PartitionData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class DirectoryData(Struct):
        id: bytes
        topics: list[AssignReplicasToDirsResponse.TopicData]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, id: bytes = ..., topics: list[AssignReplicasToDirsResponse.TopicData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    directories: list[AssignReplicasToDirsResponse.DirectoryData]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., directories: list[AssignReplicasToDirsResponse.DirectoryData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class BeginQuorumEpochRequest(Struct):
    class PartitionData(Struct):
        partition_index: int
        voter_directory_id: bytes
        leader_id: int
        leader_epoch: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., voter_directory_id: bytes = ..., leader_id: int = ..., leader_epoch: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TopicData(Struct):
        topic_name: str
        partitions: list[BeginQuorumEpochRequest.PartitionData]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_name: str = ..., partitions: list[BeginQuorumEpochRequest.PartitionData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class LeaderEndpoint(Struct):
        name: str
        host: str
        port: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., host: str = ..., port: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    cluster_id: str | None
    voter_id: int
    topics: list[BeginQuorumEpochRequest.TopicData]
    leader_endpoints: list[BeginQuorumEpochRequest.LeaderEndpoint]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, cluster_id: str | None = ..., voter_id: int = ..., topics: list[BeginQuorumEpochRequest.TopicData] = ..., leader_endpoints: list[BeginQuorumEpochRequest.LeaderEndpoint] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class BeginQuorumEpochResponse(Struct):
    class PartitionData(Struct):
        partition_index: int
        error_code: int
        leader_id: int
        leader_epoch: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., error_code: int = ..., leader_id: int = ..., leader_epoch: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TopicData(Struct):
        topic_name: str
        partitions: list[BeginQuorumEpochResponse.PartitionData]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_name: str = ..., partitions: list[BeginQuorumEpochResponse.PartitionData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class NodeEndpoint(Struct):
        node_id: int
        host: str
        port: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, node_id: int = ..., host: str = ..., port: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    error_code: int
    topics: list[BeginQuorumEpochResponse.TopicData]
    node_endpoints: list[BeginQuorumEpochResponse.NodeEndpoint]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, error_code: int = ..., topics: list[BeginQuorumEpochResponse.TopicData] = ..., node_endpoints: list[BeginQuorumEpochResponse.NodeEndpoint] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class BeginTransactionRecord(Struct):
    name: str | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, name: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class BrokerHeartbeatRequest(Struct):
    broker_id: int
    broker_epoch: int
    current_metadata_offset: int
    want_fence: bool
    want_shut_down: bool
    offline_log_dirs: list[bytes]
    cordoned_log_dirs: list[bytes] | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, broker_id: int = ..., broker_epoch: int = ..., current_metadata_offset: int = ..., want_fence: bool = ..., want_shut_down: bool = ..., offline_log_dirs: list[bytes] = ..., cordoned_log_dirs: list[bytes] | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class BrokerHeartbeatResponse(Struct):
    throttle_time_ms: int
    error_code: int
    is_caught_up: bool
    is_fenced: bool
    should_shut_down: bool
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., is_caught_up: bool = ..., is_fenced: bool = ..., should_shut_down: bool = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class BrokerRegistrationChangeRecord(Struct):
    broker_id: int
    broker_epoch: int
    fenced: int
    in_controlled_shutdown: int
    log_dirs: list[bytes]
    cordoned_log_dirs: list[bytes] | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, broker_id: int = ..., broker_epoch: int = ..., fenced: int = ..., in_controlled_shutdown: int = ..., log_dirs: list[bytes] = ..., cordoned_log_dirs: list[bytes] | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class BrokerRegistrationRequest(Struct):
    class Listener(Struct):
        name: str
        host: str
        port: int
        security_protocol: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., host: str = ..., port: int = ..., security_protocol: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class Feature(Struct):
        name: str
        min_supported_version: int
        max_supported_version: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., min_supported_version: int = ..., max_supported_version: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    broker_id: int
    cluster_id: str
    incarnation_id: bytes
    listeners: list[BrokerRegistrationRequest.Listener]
    features: list[BrokerRegistrationRequest.Feature]
    rack: str | None
    is_migrating_zk_broker: bool
    log_dirs: list[bytes]
    previous_broker_epoch: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, broker_id: int = ..., cluster_id: str = ..., incarnation_id: bytes = ..., listeners: list[BrokerRegistrationRequest.Listener] = ..., features: list[BrokerRegistrationRequest.Feature] = ..., rack: str | None = ..., is_migrating_zk_broker: bool = ..., log_dirs: list[bytes] = ..., previous_broker_epoch: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class BrokerRegistrationResponse(Struct):
    throttle_time_ms: int
    error_code: int
    broker_epoch: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., broker_epoch: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ClearElrRecord(Struct):
    topic_name: str
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, topic_name: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ClientQuotaRecord(Struct):
    class EntityData(Struct):
        entity_type: str
        entity_name: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, entity_type: str = ..., entity_name: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    entity: list[ClientQuotaRecord.EntityData]
    key: str
    value: float
    remove: bool
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, entity: list[ClientQuotaRecord.EntityData] = ..., key: str = ..., value: float = ..., remove: bool = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ConfigRecord(Struct):
    resource_type: int
    resource_name: str
    name: str
    value: str | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, resource_type: int = ..., resource_name: str = ..., name: str = ..., value: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ConsumerGroupCurrentMemberAssignmentKey(Struct):
    group_id: str
    member_id: str
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., member_id: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ConsumerGroupCurrentMemberAssignmentValue(Struct):
    class TopicPartitions(Struct):
        topic_id: bytes
        partitions: list[int]
        assignment_epochs: list[int] | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id: bytes = ..., partitions: list[int] = ..., assignment_epochs: list[int] | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions]
    partitions_pending_revocation: list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, member_epoch: int = ..., previous_member_epoch: int = ..., state: int = ..., assigned_partitions: list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions] = ..., partitions_pending_revocation: list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ConsumerGroupDescribeRequest(Struct):
    group_ids: list[str]
    include_authorized_operations: bool
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_ids: list[str] = ..., include_authorized_operations: bool = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ConsumerGroupDescribeResponse(Struct):
    class TopicPartitions(Struct):
        topic_id: bytes
        topic_name: str
        partitions: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id: bytes = ..., topic_name: str = ..., partitions: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class Assignment(Struct):
        topic_partitions: list[ConsumerGroupDescribeResponse.TopicPartitions]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_partitions: list[ConsumerGroupDescribeResponse.TopicPartitions] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class Member(Struct):
        member_id: str
        instance_id: str | None
        rack_id: str | None
        member_epoch: int
        client_id: str
        client_host: str
        subscribed_topic_names: list[str]
        subscribed_topic_regex: str | None
        assignment: ConsumerGroupDescribeResponse.Assignment
        target_assignment: ConsumerGroupDescribeResponse.Assignment
        member_type: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, member_id: str = ..., instance_id: str | None = ..., rack_id: str | None = ..., member_epoch: int = ..., client_id: str = ..., client_host: str = ..., subscribed_topic_names: list[str] = ..., subscribed_topic_regex: str | None = ..., assignment: ConsumerGroupDescribeResponse.Assignment = ..., target_assignment: ConsumerGroupDescribeResponse.Assignment = ..., member_type: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class DescribedGroup(Struct):
        error_code: int
        error_message: str | None
        group_id: str
        group_state: str
        group_epoch: int
        assignment_epoch: int
        assignor_name: str
        members: list[ConsumerGroupDescribeResponse.Member]
        authorized_operations: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, error_code: int = ..., error_message: str | None = ..., group_id: str = ..., group_state: str = ..., group_epoch: int = ..., assignment_epoch: int = ..., assignor_name: str = ..., members: list[ConsumerGroupDescribeResponse.Member] = ..., authorized_operations: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    groups: list[ConsumerGroupDescribeResponse.DescribedGroup]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., groups: list[ConsumerGroupDescribeResponse.DescribedGroup] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ConsumerGroupHeartbeatRequest(Struct):
    class TopicPartitions(Struct):
        topic_id: bytes
        partitions: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id: bytes = ..., partitions: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    subscribed_topic_names: list[str] | None
    subscribed_topic_regex: str | None
    server_assignor: str | None
    topic_partitions: list[ConsumerGroupHeartbeatRequest.TopicPartitions] | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., member_id: str = ..., member_epoch: int = ..., instance_id: str | None = ..., rack_id: str | None = ..., rebalance_timeout_ms: int = ..., subscribed_topic_names: list[str] | None = ..., subscribed_topic_regex: str | None = ..., server_assignor: str | None = ..., topic_partitions: list[ConsumerGroupHeartbeatRequest.TopicPartitions] | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ConsumerGroupHeartbeatResponse(Struct):
    class TopicPartitions(Struct):
        topic_id: bytes
        partitions: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id: bytes = ..., partitions: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class Assignment(Struct):
        topic_partitions: list[ConsumerGroupHeartbeatResponse.TopicPartitions]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_partitions: list[ConsumerGroupHeartbeatResponse.TopicPartitions] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    member_id: str | None
    member_epoch: int
    heartbeat_interval_ms: int
    assignment: ConsumerGroupHeartbeatResponse.Assignment | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., member_id: str | None = ..., member_epoch: int = ..., heartbeat_interval_ms: int = ..., assignment: ConsumerGroupHeartbeatResponse.Assignment | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ConsumerGroupMemberMetadataKey(Struct):
    group_id: str
    member_id: str
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., member_id: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ConsumerGroupMemberMetadataValue(Struct):
    class ClassicProtocol(Struct):
        name: str
        metadata: bytes
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., metadata: bytes = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class ClassicMemberMetadata(Struct):
        session_timeout_ms: int
        supported_protocols: list[ConsumerGroupMemberMetadataValue.ClassicProtocol]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, session_timeout_ms: int = ..., supported_protocols: list[ConsumerGroupMemberMetadataValue.ClassicProtocol] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]
    subscribed_topic_regex: str | None
    rebalance_timeout_ms: int
    server_assignor: str | None
    classic_member_metadata: ConsumerGroupMemberMetadataValue.ClassicMemberMetadata | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, instance_id: str | None = ..., rack_id: str | None = ..., client_id: str = ..., client_host: str = ..., subscribed_topic_names: list[str] = ..., subscribed_topic_regex: str | None = ..., rebalance_timeout_ms: int = ..., server_assignor: str | None = ..., classic_member_metadata: ConsumerGroupMemberMetadataValue.ClassicMemberMetadata | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ConsumerGroupMetadataKey(Struct):
    group_id: str
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ConsumerGroupMetadataValue(Struct):
    epoch: int
    metadata_hash: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, epoch: int = ..., metadata_hash: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ConsumerGroupPartitionMetadataKey(Struct):
    group_id: str
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ConsumerGroupPartitionMetadataValue(Struct):
    class PartitionMetadata(Struct):
        partition: int
        racks: list[str]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition: int = ..., racks: list[str] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TopicMetadata(Struct):
        topic_id: bytes
        topic_name: str
        num_partitions: int
        partition_metadata: list[ConsumerGroupPartitionMetadataValue.PartitionMetadata]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id: bytes = ..., topic_name: str = ..., num_partitions: int = ..., partition_metadata: list[ConsumerGroupPartitionMetadataValue.PartitionMetadata] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    topics: list[ConsumerGroupPartitionMetadataValue.TopicMetadata]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, topics: list[ConsumerGroupPartitionMetadataValue.TopicMetadata] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ConsumerGroupRegularExpressionKey(Struct):
    group_id: str
    regular_expression: str
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., regular_expression: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ConsumerGroupRegularExpressionValue(Struct):
    topics: list[str]
    version: int
    timestamp: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, topics: list[str] = ..., version: int = ..., timestamp: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ConsumerGroupTargetAssignmentMemberKey(Struct):
    group_id: str
    member_id: str
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., member_id: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ConsumerGroupTargetAssignmentMemberValue(Struct):
    class TopicPartition(Struct):
        topic_id: bytes
        partitions: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id: bytes = ..., partitions: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    topic_partitions: list[ConsumerGroupTargetAssignmentMemberValue.TopicPartition]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, topic_partitions: list[ConsumerGroupTargetAssignmentMemberValue.TopicPartition] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ConsumerGroupTargetAssignmentMetadataKey(Struct):
    group_id: str
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ConsumerGroupTargetAssignmentMetadataValue(Struct):
    assignment_epoch: int
    assignment_timestamp: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, assignment_epoch: int = ..., assignment_timestamp: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ConsumerProtocolAssignment(Struct):
    class TopicPartition(Struct):
        topic: str
        partitions: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic: str = ..., partitions: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    assigned_partitions: list[ConsumerProtocolAssignment.TopicPartition]
    user_data: bytes | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, assigned_partitions: list[ConsumerProtocolAssignment.TopicPartition] = ..., user_data: bytes | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ConsumerProtocolSubscription(Struct):
    class TopicPartition(Struct):
        topic: str
        partitions: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic: str = ..., partitions: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    topics: list[str]
    user_data: bytes | None
    owned_partitions: list[ConsumerProtocolSubscription.TopicPartition]
    generation_id: int
    rack_id: str | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, topics: list[str] = ..., user_data: bytes | None = ..., owned_partitions: list[ConsumerProtocolSubscription.TopicPartition] = ..., generation_id: int = ..., rack_id: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ControlRecordTypeSchema(Struct):
    type: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, type: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ControllerRegistrationRequest(Struct):
    class Listener(Struct):
        name: str
        host: str
        port: int
        security_protocol: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., host: str = ..., port: int = ..., security_protocol: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class Feature(Struct):
        name: str
        min_supported_version: int
        max_supported_version: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., min_supported_version: int = ..., max_supported_version: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    controller_id: int
    incarnation_id: bytes
    zk_migration_ready: bool
    listeners: list[ControllerRegistrationRequest.Listener]
    features: list[ControllerRegistrationRequest.Feature]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, controller_id: int = ..., incarnation_id: bytes = ..., zk_migration_ready: bool = ..., listeners: list[ControllerRegistrationRequest.Listener] = ..., features: list[ControllerRegistrationRequest.Feature] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ControllerRegistrationResponse(Struct):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class CreateAclsRequest(Struct):
    class AclCreation(Struct):
        resource_type: int
        resource_name: str
        resource_pattern_type: int
        principal: str
        host: str
        operation: int
        permission_type: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, resource_type: int = ..., resource_name: str = ..., resource_pattern_type: int = ..., principal: str = ..., host: str = ..., operation: int = ..., permission_type: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    creations: list[CreateAclsRequest.AclCreation]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, creations: list[CreateAclsRequest.AclCreation] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class CreateAclsResponse(Struct):
    class AclCreationResult(Struct):
        error_code: int
        error_message: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, error_code: int = ..., error_message: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    results: list[CreateAclsResponse.AclCreationResult]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., results: list[CreateAclsResponse.AclCreationResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class CreateDelegationTokenRequest(Struct):
    class CreatableRenewers(Struct):
        principal_type: str
        principal_name: str
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, principal_type: str = ..., principal_name: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    owner_principal_type: str | None
    owner_principal_name: str | None
    renewers: list[CreateDelegationTokenRequest.CreatableRenewers]
    max_lifetime_ms: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, owner_principal_type: str | None = ..., owner_principal_name: str | None = ..., renewers: list[CreateDelegationTokenRequest.CreatableRenewers] = ..., max_lifetime_ms: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class CreateDelegationTokenResponse(Struct):
    error_code: int
    principal_type: str
    principal_name: str
    token_requester_principal_type: str
    token_requester_principal_name: str
    issue_timestamp_ms: int
    expiry_timestamp_ms: int
    max_timestamp_ms: int
    token_id: str
    hmac: bytes
    throttle_time_ms: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, error_code: int = ..., principal_type: str = ..., principal_name: str = ..., token_requester_principal_type: str = ..., token_requester_principal_name: str = ..., issue_timestamp_ms: int = ..., expiry_timestamp_ms: int = ..., max_timestamp_ms: int = ..., token_id: str = ..., hmac: bytes = ..., throttle_time_ms: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class CreatePartitionsRequest(Struct):
    class CreatePartitionsAssignment(Struct):
        broker_ids: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, broker_ids: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class CreatePartitionsTopic(Struct):
        name: str
        count: int
        assignments: list[CreatePartitionsRequest.CreatePartitionsAssignment] | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., count: int = ..., assignments: list[CreatePartitionsRequest.CreatePartitionsAssignment] | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    topics: list[CreatePartitionsRequest.CreatePartitionsTopic]
    timeout_ms: int
    validate_only: bool
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, topics: list[CreatePartitionsRequest.CreatePartitionsTopic] = ..., timeout_ms: int = ..., validate_only: bool = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class CreatePartitionsResponse(Struct):
    class CreatePartitionsTopicResult(Struct):
        name: str
        error_code: int
        error_message: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., error_code: int = ..., error_message: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    results: list[CreatePartitionsResponse.CreatePartitionsTopicResult]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., results: list[CreatePartitionsResponse.CreatePartitionsTopicResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class CreateTopicsRequest(Struct):
    class CreatableReplicaAssignment(Struct):
        partition_index: int
        broker_ids: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., broker_ids: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class CreatableTopicConfig(Struct):
        name: str
        value: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., value: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class CreatableTopic(Struct):
        name: str
        num_partitions: int
        replication_factor: int
        assignments: list[CreateTopicsRequest.CreatableReplicaAssignment]
        configs: list[CreateTopicsRequest.CreatableTopicConfig]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., num_partitions: int = ..., replication_factor: int = ..., assignments: list[CreateTopicsRequest.CreatableReplicaAssignment] = ..., configs: list[CreateTopicsRequest.CreatableTopicConfig] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    topics: list[CreateTopicsRequest.CreatableTopic]
    timeout_ms: int
    validate_only: bool
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, topics: list[CreateTopicsRequest.CreatableTopic] = ..., timeout_ms: int = ..., validate_only: bool = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class CreateTopicsResponse(Struct):
    class CreatableTopicConfigs(Struct):
        name: str
        value: str | None
        read_only: bool
        config_source: int
        is_sensitive: bool
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., value: str | None = ..., read_only: bool = ..., config_source: int = ..., is_sensitive: bool = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class CreatableTopicResult(Struct):
        name: str
        topic_id: bytes
        error_code: int
        error_message: str | None
        topic_config_error_code: int
        num_partitions: int
        replication_factor: int
        configs: list[CreateTopicsResponse.CreatableTopicConfigs] | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., topic_id: bytes = ..., error_code: int = ..., error_message: str | None = ..., topic_config_error_code: int = ..., num_partitions: int = ..., replication_factor: int = ..., configs: list[CreateTopicsResponse.CreatableTopicConfigs] | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    topics: list[CreateTopicsResponse.CreatableTopicResult]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., topics: list[CreateTopicsResponse.CreatableTopicResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DefaultPrincipalData(Struct):
    type: str
    name: str
    token_authenticated: bool
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, type: str = ..., name: str = ..., token_authenticated: bool = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DelegationTokenRecord(Struct):
    owner: str
    requester: str
    renewers: list[str]
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int
    token_id: str
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, owner: str = ..., requester: str = ..., renewers: list[str] = ..., issue_timestamp: int = ..., max_timestamp: int = ..., expiration_timestamp: int = ..., token_id: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DeleteAclsRequest(Struct):
    class DeleteAclsFilter(Struct):
        resource_type_filter: int
        resource_name_filter: str | None
        pattern_type_filter: int
        principal_filter: str | None
        host_filter: str | None
        operation: int
        permission_type: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, resource_type_filter: int = ..., resource_name_filter: str | None = ..., pattern_type_filter: int = ..., principal_filter: str | None = ..., host_filter: str | None = ..., operation: int = ..., permission_type: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    filters: list[DeleteAclsRequest.DeleteAclsFilter]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, filters: list[DeleteAclsRequest.DeleteAclsFilter] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DeleteAclsResponse(Struct):
    class DeleteAclsMatchingAcl(Struct):
        error_code: int
        error_message: str | None
        resource_type: int
        resource_name: str
        pattern_type: int
        principal: str
        host: str
        operation: int
        permission_type: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, error_code: int = ..., error_message: str | None = ..., resource_type: int = ..., resource_name: str = ..., pattern_type: int = ..., principal: str = ..., host: str = ..., operation: int = ..., permission_type: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class DeleteAclsFilterResult(Struct):
        error_code: int
        error_message: str | None
        matching_acls: list[DeleteAclsResponse.DeleteAclsMatchingAcl]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, error_code: int = ..., error_message: str | None = ..., matching_acls: list[DeleteAclsResponse.DeleteAclsMatchingAcl] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    filter_results: list[DeleteAclsResponse.DeleteAclsFilterResult]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., filter_results: list[DeleteAclsResponse.DeleteAclsFilterResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DeleteGroupsRequest(Struct):
    groups_names: list[str]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, groups_names: list[str] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DeleteGroupsResponse(Struct):
    class DeletableGroupResult(Struct):
        group_id: str
        error_code: int
        error_message: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, group_id: str = ..., error_code: int = ..., error_message: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    results: list[DeleteGroupsResponse.DeletableGroupResult]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., results: list[DeleteGroupsResponse.DeletableGroupResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DeleteRecordsRequest(Struct):
    class DeleteRecordsPartition(Struct):
        partition_index: int
        offset: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., offset: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class DeleteRecordsTopic(Struct):
        name: str
        partitions: list[DeleteRecordsRequest.DeleteRecordsPartition]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., partitions: list[DeleteRecordsRequest.DeleteRecordsPartition] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    topics: list[DeleteRecordsRequest.DeleteRecordsTopic]
    timeout_ms: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, topics: list[DeleteRecordsRequest.DeleteRecordsTopic] = ..., timeout_ms: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DeleteRecordsResponse(Struct):
    class DeleteRecordsPartitionResult(Struct):
        partition_index: int
        low_watermark: int
        error_code: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., low_watermark: int = ..., error_code: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class DeleteRecordsTopicResult(Struct):
        name: str
        partitions: list[DeleteRecordsResponse.DeleteRecordsPartitionResult]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., partitions: list[DeleteRecordsResponse.DeleteRecordsPartitionResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    topics: list[DeleteRecordsResponse.DeleteRecordsTopicResult]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., topics: list[DeleteRecordsResponse.DeleteRecordsTopicResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DeleteShareGroupOffsetsRequest(Struct):
    class DeleteShareGroupOffsetsRequestTopic(Struct):
        topic_name: str
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_name: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    group_id: str
    topics: list[DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., topics: list[DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DeleteShareGroupOffsetsResponse(Struct):
    class DeleteShareGroupOffsetsResponseTopic(Struct):
        topic_name: str
        topic_id: bytes
        error_code: int
        error_message: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_name: str = ..., topic_id: bytes = ..., error_code: int = ..., error_message: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    responses: list[DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., responses: list[DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DeleteShareGroupStateRequest(Struct):
    class PartitionData(Struct):
        partition: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class DeleteStateData(Struct):
        topic_id: bytes
        partitions: list[DeleteShareGroupStateRequest.PartitionData]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id: bytes = ..., partitions: list[DeleteShareGroupStateRequest.PartitionData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    group_id: str
    topics: list[DeleteShareGroupStateRequest.DeleteStateData]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., topics: list[DeleteShareGroupStateRequest.DeleteStateData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DeleteShareGroupStateResponse(Struct):
    class PartitionResult(Struct):
        partition: int
        error_code: int
        error_message: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition: int = ..., error_code: int = ..., error_message: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class DeleteStateResult(Struct):
        topic_id: bytes
        partitions: list[DeleteShareGroupStateResponse.PartitionResult]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id: bytes = ..., partitions: list[DeleteShareGroupStateResponse.PartitionResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    results: list[DeleteShareGroupStateResponse.DeleteStateResult]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, results: list[DeleteShareGroupStateResponse.DeleteStateResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DeleteTopicsRequest(Struct):
    class DeleteTopicState(Struct):
        name: str | None
        topic_id: bytes
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str | None = ..., topic_id: bytes = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    topics: list[DeleteTopicsRequest.DeleteTopicState]
    topic_names: list[str]
    timeout_ms: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, topics: list[DeleteTopicsRequest.DeleteTopicState] = ..., topic_names: list[str] = ..., timeout_ms: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DeleteTopicsResponse(Struct):
    class DeletableTopicResult(Struct):
        name: str | None
        topic_id: bytes
        error_code: int
        error_message: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str | None = ..., topic_id: bytes = ..., error_code: int = ..., error_message: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    responses: list[DeleteTopicsResponse.DeletableTopicResult]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., responses: list[DeleteTopicsResponse.DeletableTopicResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DescribeAclsRequest(Struct):
    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, resource_type_filter: int = ..., resource_name_filter: str | None = ..., pattern_type_filter: int = ..., principal_filter: str | None = ..., host_filter: str | None = ..., operation: int = ..., permission_type: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DescribeAclsResponse(Struct):
    class AclDescription(Struct):
        principal: str
        host: str
        operation: int
        permission_type: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, principal: str = ..., host: str = ..., operation: int = ..., permission_type: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class DescribeAclsResource(Struct):
        resource_type: int
        resource_name: str
        pattern_type: int
        acls: list[DescribeAclsResponse.AclDescription]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, resource_type: int = ..., resource_name: str = ..., pattern_type: int = ..., acls: list[DescribeAclsResponse.AclDescription] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    resources: list[DescribeAclsResponse.DescribeAclsResource]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., resources: list[DescribeAclsResponse.DescribeAclsResource] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DescribeClientQuotasRequest(Struct):
    class ComponentData(Struct):
        entity_type: str
        match_type: int
        match: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, entity_type: str = ..., match_type: int = ..., match: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    components: list[DescribeClientQuotasRequest.ComponentData]
    strict: bool
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, components: list[DescribeClientQuotasRequest.ComponentData] = ..., strict: bool = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DescribeClientQuotasResponse(Struct):
    class EntityData(Struct):
        entity_type: str
        entity_name: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, entity_type: str = ..., entity_name: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class ValueData(Struct):
        key: str
        value: float
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, key: str = ..., value: float = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class EntryData(Struct):
        entity: list[DescribeClientQuotasResponse.EntityData]
        values: list[DescribeClientQuotasResponse.ValueData]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, entity: list[DescribeClientQuotasResponse.EntityData] = ..., values: list[DescribeClientQuotasResponse.ValueData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    entries: list[DescribeClientQuotasResponse.EntryData] | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., entries: list[DescribeClientQuotasResponse.EntryData] | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DescribeClusterRequest(Struct):
    include_cluster_authorized_operations: bool
    endpoint_type: int
    include_fenced_brokers: bool
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, include_cluster_authorized_operations: bool = ..., endpoint_type: int = ..., include_fenced_brokers: bool = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DescribeClusterResponse(Struct):
    class DescribeClusterBroker(Struct):
        broker_id: int
        host: str
        port: int
        rack: str | None
        is_fenced: bool
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, broker_id: int = ..., host: str = ..., port: int = ..., rack: str | None = ..., is_fenced: bool = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    endpoint_type: int
    cluster_id: str
    controller_id: int
    brokers: list[DescribeClusterResponse.DescribeClusterBroker]
    cluster_authorized_operations: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., endpoint_type: int = ..., cluster_id: str = ..., controller_id: int = ..., brokers: list[DescribeClusterResponse.DescribeClusterBroker] = ..., cluster_authorized_operations: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DescribeConfigsRequest(Struct):
    class DescribeConfigsResource(Struct):
        resource_type: int
        resource_name: str
        configuration_keys: list[str] | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, resource_type: int = ..., resource_name: str = ..., configuration_keys: list[str] | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    resources: list[DescribeConfigsRequest.DescribeConfigsResource]
    include_synonyms: bool
    include_documentation: bool
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, resources: list[DescribeConfigsRequest.DescribeConfigsResource] = ..., include_synonyms: bool = ..., include_documentation: bool = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DescribeConfigsResponse(Struct):
    class DescribeConfigsSynonym(Struct):
        name: str
        value: str | None
        source: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., value: str | None = ..., source: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class DescribeConfigsResourceResult(Struct):
        name: str
        value: str | None
        read_only: bool
        config_source: int
        is_sensitive: bool
        synonyms: list[DescribeConfigsResponse.DescribeConfigsSynonym]
        config_type: int
        documentation: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., value: str | None = ..., read_only: bool = ..., config_source: int = ..., is_sensitive: bool = ..., synonyms: list[DescribeConfigsResponse.DescribeConfigsSynonym] = ..., config_type: int = ..., documentation: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class DescribeConfigsResult(Struct):
        error_code: int
        error_message: str | None
        resource_type: int
        resource_name: str
        configs: list[DescribeConfigsResponse.DescribeConfigsResourceResult]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, error_code: int = ..., error_message: str | None = ..., resource_type: int = ..., resource_name: str = ..., configs: list[DescribeConfigsResponse.DescribeConfigsResourceResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    results: list[DescribeConfigsResponse.DescribeConfigsResult]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., results: list[DescribeConfigsResponse.DescribeConfigsResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DescribeDelegationTokenRequest(Struct):
    class DescribeDelegationTokenOwner(Struct):
        principal_type: str
        principal_name: str
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, principal_type: str = ..., principal_name: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    owners: list[DescribeDelegationTokenRequest.DescribeDelegationTokenOwner] | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, owners: list[DescribeDelegationTokenRequest.DescribeDelegationTokenOwner] | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DescribeDelegationTokenResponse(Struct):
    class DescribedDelegationTokenRenewer(Struct):
        principal_type: str
        principal_name: str
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, principal_type: str = ..., principal_name: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class DescribedDelegationToken(Struct):
        principal_type: str
        principal_name: str
        token_requester_principal_type: str
        token_requester_principal_name: str
        issue_timestamp: int
        expiry_timestamp: int
        max_timestamp: int
        token_id: str
        hmac: bytes
        renewers: list[DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, principal_type: str = ..., principal_name: str = ..., token_requester_principal_type: str = ..., token_requester_principal_name: str = ..., issue_timestamp: int = ..., expiry_timestamp: int = ..., max_timestamp: int = ..., token_id: str = ..., hmac: bytes = ..., renewers: list[DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    error_code: int
    tokens: list[DescribeDelegationTokenResponse.DescribedDelegationToken]
    throttle_time_ms: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, error_code: int = ..., tokens: list[DescribeDelegationTokenResponse.DescribedDelegationToken] = ..., throttle_time_ms: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DescribeGroupsRequest(Struct):
    groups: list[str]
    include_authorized_operations: bool
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, groups: list[str] = ..., include_authorized_operations: bool = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DescribeGroupsResponse(Struct):
    class DescribedGroupMember(Struct):
        member_id: str
        group_instance_id: str | None
        client_id: str
        client_host: str
        member_metadata: bytes
        member_assignment: bytes
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, member_id: str = ..., group_instance_id: str | None = ..., client_id: str = ..., client_host: str = ..., member_metadata: bytes = ..., member_assignment: bytes = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class DescribedGroup(Struct):
        error_code: int
        error_message: str | None
        group_id: str
        group_state: str
        protocol_type: str
        protocol_data: str
        members: list[DescribeGroupsResponse.DescribedGroupMember]
        authorized_operations: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, error_code: int = ..., error_message: str | None = ..., group_id: str = ..., group_state: str = ..., protocol_type: str = ..., protocol_data: str = ..., members: list[DescribeGroupsResponse.DescribedGroupMember] = ..., authorized_operations: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    groups: list[DescribeGroupsResponse.DescribedGroup]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., groups: list[DescribeGroupsResponse.DescribedGroup] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DescribeLogDirsRequest(Struct):
    class DescribableLogDirTopic(Struct):
        topic: str
        partitions: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic: str = ..., partitions: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    topics: list[DescribeLogDirsRequest.DescribableLogDirTopic] | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, topics: list[DescribeLogDirsRequest.DescribableLogDirTopic] | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DescribeLogDirsResponse(Struct):
    class DescribeLogDirsPartition(Struct):
        partition_index: int
        partition_size: int
        offset_lag: int
        is_future_key: bool
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., partition_size: int = ..., offset_lag: int = ..., is_future_key: bool = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class DescribeLogDirsTopic(Struct):
        name: str
        partitions: list[DescribeLogDirsResponse.DescribeLogDirsPartition]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., partitions: list[DescribeLogDirsResponse.DescribeLogDirsPartition] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class DescribeLogDirsResult(Struct):
        error_code: int
        log_dir: str
        topics: list[DescribeLogDirsResponse.DescribeLogDirsTopic]
        total_bytes: int
        usable_bytes: int
        is_cordoned: bool
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, error_code: int = ..., log_dir: str = ..., topics: list[DescribeLogDirsResponse.DescribeLogDirsTopic] = ..., total_bytes: int = ..., usable_bytes: int = ..., is_cordoned: bool = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    results: list[DescribeLogDirsResponse.DescribeLogDirsResult]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., results: list[DescribeLogDirsResponse.DescribeLogDirsResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DescribeProducersRequest(Struct):
    class TopicRequest(Struct):
        name: str
        partition_indexes: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., partition_indexes: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    topics: list[DescribeProducersRequest.TopicRequest]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, topics: list[DescribeProducersRequest.TopicRequest] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DescribeProducersResponse(Struct):
    class ProducerState(Struct):
        producer_id: int
        producer_epoch: int
        last_sequence: int
        last_timestamp: int
        coordinator_epoch: int
        current_txn_start_offset: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, producer_id: int = ..., producer_epoch: int = ..., last_sequence: int = ..., last_timestamp: int = ..., coordinator_epoch: int = ..., current_txn_start_offset: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class PartitionResponse(Struct):
        partition_index: int
        error_code: int
        error_message: str | None
        active_producers: list[DescribeProducersResponse.ProducerState]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., error_code: int = ..., error_message: str | None = ..., active_producers: list[DescribeProducersResponse.ProducerState] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TopicResponse(Struct):
        name: str
        partitions: list[DescribeProducersResponse.PartitionResponse]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., partitions: list[DescribeProducersResponse.PartitionResponse] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    topics: list[DescribeProducersResponse.TopicResponse]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., topics: list[DescribeProducersResponse.TopicResponse] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DescribeQuorumRequest(Struct):
    class PartitionData(Struct):
        partition_index: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TopicData(Struct):
        topic_name: str
        partitions: list[DescribeQuorumRequest.PartitionData]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_name: str = ..., partitions: list[DescribeQuorumRequest.PartitionData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    topics: list[DescribeQuorumRequest.TopicData]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, topics: list[DescribeQuorumRequest.TopicData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DescribeQuorumResponse(Struct):
    class ReplicaState(Struct):
        replica_id: int
        replica_directory_id: bytes
        log_end_offset: int
        last_fetch_timestamp: int
        last_caught_up_timestamp: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, replica_id: int = ..., replica_directory_id: bytes = ..., log_end_offset: int = ..., last_fetch_timestamp: int = ..., last_caught_up_timestamp: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class PartitionData(Struct):
        partition_index: int
        error_code: int
        error_message: str | None
        leader_id: int
        leader_epoch: int
        high_watermark: int
        current_voters: list[DescribeQuorumResponse.ReplicaState]
        observers: list[DescribeQuorumResponse.ReplicaState]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., error_code: int = ..., error_message: str | None = ..., leader_id: int = ..., leader_epoch: int = ..., high_watermark: int = ..., current_voters: list[DescribeQuorumResponse.ReplicaState] = ..., observers: list[DescribeQuorumResponse.ReplicaState] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TopicData(Struct):
        topic_name: str
        partitions: list[DescribeQuorumResponse.PartitionData]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_name: str = ..., partitions: list[DescribeQuorumResponse.PartitionData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class Listener(Struct):
        name: str
        host: str
        port: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., host: str = ..., port: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class Node(Struct):
        node_id: int
        listeners: list[DescribeQuorumResponse.Listener]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, node_id: int = ..., listeners: list[DescribeQuorumResponse.Listener] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    error_code: int
    error_message: str | None
    topics: list[DescribeQuorumResponse.TopicData]
    nodes: list[DescribeQuorumResponse.Node]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, error_code: int = ..., error_message: str | None = ..., topics: list[DescribeQuorumResponse.TopicData] = ..., nodes: list[DescribeQuorumResponse.Node] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DescribeShareGroupOffsetsRequest(Struct):
    class DescribeShareGroupOffsetsRequestTopic(Struct):
        topic_name: str
        partitions: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_name: str = ..., partitions: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class DescribeShareGroupOffsetsRequestGroup(Struct):
        group_id: str
        topics: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic] | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, group_id: str = ..., topics: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic] | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    groups: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, groups: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DescribeShareGroupOffsetsResponse(Struct):
    class DescribeShareGroupOffsetsResponsePartition(Struct):
        partition_index: int
        start_offset: int
        leader_epoch: int
        lag: int
        error_code: int
        error_message: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., start_offset: int = ..., leader_epoch: int = ..., lag: int = ..., error_code: int = ..., error_message: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class DescribeShareGroupOffsetsResponseTopic(Struct):
        topic_name: str
        topic_id: bytes
        partitions: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_name: str = ..., topic_id: bytes = ..., partitions: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class DescribeShareGroupOffsetsResponseGroup(Struct):
        group_id: str
        topics: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic]
        error_code: int
        error_message: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, group_id: str = ..., topics: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic] = ..., error_code: int = ..., error_message: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    groups: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., groups: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DescribeTopicPartitionsRequest(Struct):
    class TopicRequest(Struct):
        name: str
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class Cursor(Struct):
        topic_name: str
        partition_index: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_name: str = ..., partition_index: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    topics: list[DescribeTopicPartitionsRequest.TopicRequest]
    response_partition_limit: int
    cursor: DescribeTopicPartitionsRequest.Cursor | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, topics: list[DescribeTopicPartitionsRequest.TopicRequest] = ..., response_partition_limit: int = ..., cursor: DescribeTopicPartitionsRequest.Cursor | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DescribeTopicPartitionsResponse(Struct):
    class DescribeTopicPartitionsResponsePartition(Struct):
        error_code: int
        partition_index: int
        leader_id: int
        leader_epoch: int
        replica_nodes: list[int]
        isr_nodes: list[int]
        eligible_leader_replicas: list[int] | None
        last_known_elr: list[int] | None
        offline_replicas: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, error_code: int = ..., partition_index: int = ..., leader_id: int = ..., leader_epoch: int = ..., replica_nodes: list[int] = ..., isr_nodes: list[int] = ..., eligible_leader_replicas: list[int] | None = ..., last_known_elr: list[int] | None = ..., offline_replicas: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class DescribeTopicPartitionsResponseTopic(Struct):
        error_code: int
        name: str | None
        topic_id: bytes
        is_internal: bool
        partitions: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition]
        topic_authorized_operations: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, error_code: int = ..., name: str | None = ..., topic_id: bytes = ..., is_internal: bool = ..., partitions: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition] = ..., topic_authorized_operations: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class Cursor(Struct):
        topic_name: str
        partition_index: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_name: str = ..., partition_index: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    topics: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic]
    next_cursor: DescribeTopicPartitionsResponse.Cursor | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., topics: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic] = ..., next_cursor: DescribeTopicPartitionsResponse.Cursor | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DescribeTransactionsRequest(Struct):
    transactional_ids: list[str]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, transactional_ids: list[str] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DescribeTransactionsResponse(Struct):
    class TopicData(Struct):
        topic: str
        partitions: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic: str = ..., partitions: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TransactionState(Struct):
        error_code: int
        transactional_id: str
        transaction_state: str
        transaction_timeout_ms: int
        transaction_start_time_ms: int
        producer_id: int
        producer_epoch: int
        topics: list[DescribeTransactionsResponse.TopicData]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, error_code: int = ..., transactional_id: str = ..., transaction_state: str = ..., transaction_timeout_ms: int = ..., transaction_start_time_ms: int = ..., producer_id: int = ..., producer_epoch: int = ..., topics: list[DescribeTransactionsResponse.TopicData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    transaction_states: list[DescribeTransactionsResponse.TransactionState]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., transaction_states: list[DescribeTransactionsResponse.TransactionState] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DescribeUserScramCredentialsRequest(Struct):
    class UserName(Struct):
        name: str
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    users: list[DescribeUserScramCredentialsRequest.UserName] | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, users: list[DescribeUserScramCredentialsRequest.UserName] | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class DescribeUserScramCredentialsResponse(Struct):
    class CredentialInfo(Struct):
        mechanism: int
        iterations: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, mechanism: int = ..., iterations: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class DescribeUserScramCredentialsResult(Struct):
        user: str
        error_code: int
        error_message: str | None
        credential_infos: list[DescribeUserScramCredentialsResponse.CredentialInfo]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, user: str = ..., error_code: int = ..., error_message: str | None = ..., credential_infos: list[DescribeUserScramCredentialsResponse.CredentialInfo] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    results: list[DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., results: list[DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ElectLeadersRequest(Struct):
    class TopicPartitions(Struct):
        topic: str
        partitions: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic: str = ..., partitions: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    election_type: int
    topic_partitions: list[ElectLeadersRequest.TopicPartitions] | None
    timeout_ms: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, election_type: int = ..., topic_partitions: list[ElectLeadersRequest.TopicPartitions] | None = ..., timeout_ms: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ElectLeadersResponse(Struct):
    class PartitionResult(Struct):
        partition_id: int
        error_code: int
        error_message: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_id: int = ..., error_code: int = ..., error_message: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class ReplicaElectionResult(Struct):
        topic: str
        partition_result: list[ElectLeadersResponse.PartitionResult]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic: str = ..., partition_result: list[ElectLeadersResponse.PartitionResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    replica_election_results: list[ElectLeadersResponse.ReplicaElectionResult]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., replica_election_results: list[ElectLeadersResponse.ReplicaElectionResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class EndQuorumEpochRequest(Struct):
    class ReplicaInfo(Struct):
        candidate_id: int
        candidate_directory_id: bytes
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, candidate_id: int = ..., candidate_directory_id: bytes = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class PartitionData(Struct):
        partition_index: int
        leader_id: int
        leader_epoch: int
        preferred_successors: list[int]
        preferred_candidates: list[EndQuorumEpochRequest.ReplicaInfo]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., leader_id: int = ..., leader_epoch: int = ..., preferred_successors: list[int] = ..., preferred_candidates: list[EndQuorumEpochRequest.ReplicaInfo] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TopicData(Struct):
        topic_name: str
        partitions: list[EndQuorumEpochRequest.PartitionData]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_name: str = ..., partitions: list[EndQuorumEpochRequest.PartitionData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class LeaderEndpoint(Struct):
        name: str
        host: str
        port: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., host: str = ..., port: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    cluster_id: str | None
    topics: list[EndQuorumEpochRequest.TopicData]
    leader_endpoints: list[EndQuorumEpochRequest.LeaderEndpoint]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, cluster_id: str | None = ..., topics: list[EndQuorumEpochRequest.TopicData] = ..., leader_endpoints: list[EndQuorumEpochRequest.LeaderEndpoint] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class EndQuorumEpochResponse(Struct):
    class PartitionData(Struct):
        partition_index: int
        error_code: int
        leader_id: int
        leader_epoch: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., error_code: int = ..., leader_id: int = ..., leader_epoch: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TopicData(Struct):
        topic_name: str
        partitions: list[EndQuorumEpochResponse.PartitionData]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_name: str = ..., partitions: list[EndQuorumEpochResponse.PartitionData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class NodeEndpoint(Struct):
        node_id: int
        host: str
        port: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, node_id: int = ..., host: str = ..., port: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    error_code: int
    topics: list[EndQuorumEpochResponse.TopicData]
    node_endpoints: list[EndQuorumEpochResponse.NodeEndpoint]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, error_code: int = ..., topics: list[EndQuorumEpochResponse.TopicData] = ..., node_endpoints: list[EndQuorumEpochResponse.NodeEndpoint] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class EndTransactionRecord(Struct):
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class EndTxnMarker(Struct):
    coordinator_epoch: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, coordinator_epoch: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class EndTxnRequest(Struct):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, transactional_id: str = ..., producer_id: int = ..., producer_epoch: int = ..., committed: bool = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class EndTxnResponse(Struct):
    throttle_time_ms: int
    error_code: int
    producer_id: int
    producer_epoch: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., producer_id: int = ..., producer_epoch: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class EnvelopeRequest(Struct):
    request_data: bytes
    request_principal: bytes | None
    client_host_address: bytes
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, request_data: bytes = ..., request_principal: bytes | None = ..., client_host_address: bytes = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class EnvelopeResponse(Struct):
    response_data: bytes | None
    error_code: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, response_data: bytes | None = ..., error_code: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ExpireDelegationTokenRequest(Struct):
    hmac: bytes
    expiry_time_period_ms: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, hmac: bytes = ..., expiry_time_period_ms: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ExpireDelegationTokenResponse(Struct):
    error_code: int
    expiry_timestamp_ms: int
    throttle_time_ms: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, error_code: int = ..., expiry_timestamp_ms: int = ..., throttle_time_ms: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class FeatureLevelRecord(Struct):
    name: str
    feature_level: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, name: str = ..., feature_level: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class FenceBrokerRecord(Struct):
    id: int
    epoch: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, id: int = ..., epoch: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class FetchRequest(Struct):
    class ReplicaState(Struct):
        replica_id: int
        replica_epoch: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, replica_id: int = ..., replica_epoch: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class FetchPartition(Struct):
        partition: int
        current_leader_epoch: int
        fetch_offset: int
        last_fetched_epoch: int
        log_start_offset: int
        partition_max_bytes: int
        replica_directory_id: bytes
        high_watermark: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition: int = ..., current_leader_epoch: int = ..., fetch_offset: int = ..., last_fetched_epoch: int = ..., log_start_offset: int = ..., partition_max_bytes: int = ..., replica_directory_id: bytes = ..., high_watermark: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class FetchTopic(Struct):
        topic: str
        topic_id: bytes
        partitions: list[FetchRequest.FetchPartition]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic: str = ..., topic_id: bytes = ..., partitions: list[FetchRequest.FetchPartition] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class ForgottenTopic(Struct):
        topic: str
        topic_id: bytes
        partitions: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic: str = ..., topic_id: bytes = ..., partitions: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    cluster_id: str | None
    replica_id: int
    replica_state: FetchRequest.ReplicaState
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: list[FetchRequest.FetchTopic]
    forgotten_topics_data: list[FetchRequest.ForgottenTopic]
    rack_id: str
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, cluster_id: str | None = ..., replica_id: int = ..., replica_state: FetchRequest.ReplicaState = ..., max_wait_ms: int = ..., min_bytes: int = ..., max_bytes: int = ..., isolation_level: int = ..., session_id: int = ..., session_epoch: int = ..., topics: list[FetchRequest.FetchTopic] = ..., forgotten_topics_data: list[FetchRequest.ForgottenTopic] = ..., rack_id: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class FetchResponse(Struct):
    class EpochEndOffset(Struct):
        epoch: int
        end_offset: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, epoch: int = ..., end_offset: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class LeaderIdAndEpoch(Struct):
        leader_id: int
        leader_epoch: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, leader_id: int = ..., leader_epoch: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class SnapshotId(Struct):
        end_offset: int
        epoch: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, end_offset: int = ..., epoch: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class AbortedTransaction(Struct):
        producer_id: int
        first_offset: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, producer_id: int = ..., first_offset: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class PartitionData(Struct):
        partition_index: int
        error_code: int
        high_watermark: int
        last_stable_offset: int
        log_start_offset: int
        diverging_epoch: FetchResponse.EpochEndOffset
        current_leader: FetchResponse.LeaderIdAndEpoch
        snapshot_id: FetchResponse.SnapshotId
        aborted_transactions: list[FetchResponse.AbortedTransaction] | None
        preferred_read_replica: int
        records: Any
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., error_code: int = ..., high_watermark: int = ..., last_stable_offset: int = ..., log_start_offset: int = ..., diverging_epoch: FetchResponse.EpochEndOffset = ..., current_leader: FetchResponse.LeaderIdAndEpoch = ..., snapshot_id: FetchResponse.SnapshotId = ..., aborted_transactions: list[FetchResponse.AbortedTransaction] | None = ..., preferred_read_replica: int = ..., records: Any = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class FetchableTopicResponse(Struct):
        topic: str
        topic_id: bytes
        partitions: list[FetchResponse.PartitionData]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic: str = ..., topic_id: bytes = ..., partitions: list[FetchResponse.PartitionData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class NodeEndpoint(Struct):
        node_id: int
        host: str
        port: int
        rack: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, node_id: int = ..., host: str = ..., port: int = ..., rack: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    session_id: int
    responses: list[FetchResponse.FetchableTopicResponse]
    node_endpoints: list[FetchResponse.NodeEndpoint]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., session_id: int = ..., responses: list[FetchResponse.FetchableTopicResponse] = ..., node_endpoints: list[FetchResponse.NodeEndpoint] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class FetchSnapshotRequest(Struct):
    class SnapshotId(Struct):
        end_offset: int
        epoch: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, end_offset: int = ..., epoch: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class PartitionSnapshot(Struct):
        partition: int
        current_leader_epoch: int
        snapshot_id: FetchSnapshotRequest.SnapshotId
        position: int
        replica_directory_id: bytes
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition: int = ..., current_leader_epoch: int = ..., snapshot_id: FetchSnapshotRequest.SnapshotId = ..., position: int = ..., replica_directory_id: bytes = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TopicSnapshot(Struct):
        name: str
        partitions: list[FetchSnapshotRequest.PartitionSnapshot]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., partitions: list[FetchSnapshotRequest.PartitionSnapshot] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    cluster_id: str | None
    replica_id: int
    max_bytes: int
    topics: list[FetchSnapshotRequest.TopicSnapshot]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, cluster_id: str | None = ..., replica_id: int = ..., max_bytes: int = ..., topics: list[FetchSnapshotRequest.TopicSnapshot] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class FetchSnapshotResponse(Struct):
    class SnapshotId(Struct):
        end_offset: int
        epoch: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, end_offset: int = ..., epoch: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class LeaderIdAndEpoch(Struct):
        leader_id: int
        leader_epoch: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, leader_id: int = ..., leader_epoch: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class PartitionSnapshot(Struct):
        index: int
        error_code: int
        snapshot_id: FetchSnapshotResponse.SnapshotId
        current_leader: FetchSnapshotResponse.LeaderIdAndEpoch
        size: int
        position: int
        unaligned_records: Any
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, index: int = ..., error_code: int = ..., snapshot_id: FetchSnapshotResponse.SnapshotId = ..., current_leader: FetchSnapshotResponse.LeaderIdAndEpoch = ..., size: int = ..., position: int = ..., unaligned_records: Any = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TopicSnapshot(Struct):
        name: str
        partitions: list[FetchSnapshotResponse.PartitionSnapshot]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., partitions: list[FetchSnapshotResponse.PartitionSnapshot] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class NodeEndpoint(Struct):
        node_id: int
        host: str
        port: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, node_id: int = ..., host: str = ..., port: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    topics: list[FetchSnapshotResponse.TopicSnapshot]
    node_endpoints: list[FetchSnapshotResponse.NodeEndpoint]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., topics: list[FetchSnapshotResponse.TopicSnapshot] = ..., node_endpoints: list[FetchSnapshotResponse.NodeEndpoint] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class FindCoordinatorRequest(Struct):
    key: str
    key_type: int
    coordinator_keys: list[str]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, key: str = ..., key_type: int = ..., coordinator_keys: list[str] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class FindCoordinatorResponse(Struct):
    class Coordinator(Struct):
        key: str
        node_id: int
        host: str
        port: int
        error_code: int
        error_message: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, key: str = ..., node_id: int = ..., host: str = ..., port: int = ..., error_code: int = ..., error_message: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    node_id: int
    host: str
    port: int
    coordinators: list[FindCoordinatorResponse.Coordinator]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., node_id: int = ..., host: str = ..., port: int = ..., coordinators: list[FindCoordinatorResponse.Coordinator] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class GetTelemetrySubscriptionsRequest(Struct):
    client_instance_id: bytes
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, client_instance_id: bytes = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class GetTelemetrySubscriptionsResponse(Struct):
    throttle_time_ms: int
    error_code: int
    client_instance_id: bytes
    subscription_id: int
    accepted_compression_types: list[int]
    push_interval_ms: int
    telemetry_max_bytes: int
    delta_temporality: bool
    requested_metrics: list[str]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., client_instance_id: bytes = ..., subscription_id: int = ..., accepted_compression_types: list[int] = ..., push_interval_ms: int = ..., telemetry_max_bytes: int = ..., delta_temporality: bool = ..., requested_metrics: list[str] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class GroupMetadataKey(Struct):
    group: str
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class GroupMetadataValue(Struct):
    class MemberMetadata(Struct):
        member_id: str
        group_instance_id: str | None
        client_id: str
        client_host: str
        rebalance_timeout: int
        session_timeout: int
        subscription: bytes
        assignment: bytes
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, member_id: str = ..., group_instance_id: str | None = ..., client_id: str = ..., client_host: str = ..., rebalance_timeout: int = ..., session_timeout: int = ..., subscription: bytes = ..., assignment: bytes = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    current_state_timestamp: int
    members: list[GroupMetadataValue.MemberMetadata]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, protocol_type: str = ..., generation: int = ..., protocol: str | None = ..., leader: str | None = ..., current_state_timestamp: int = ..., members: list[GroupMetadataValue.MemberMetadata] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class HeartbeatRequest(Struct):
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., generation_id: int = ..., member_id: str = ..., group_instance_id: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class HeartbeatResponse(Struct):
    throttle_time_ms: int
    error_code: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class IncrementalAlterConfigsRequest(Struct):
    class AlterableConfig(Struct):
        name: str
        config_operation: int
        value: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., config_operation: int = ..., value: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class AlterConfigsResource(Struct):
        resource_type: int
        resource_name: str
        configs: list[IncrementalAlterConfigsRequest.AlterableConfig]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, resource_type: int = ..., resource_name: str = ..., configs: list[IncrementalAlterConfigsRequest.AlterableConfig] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    resources: list[IncrementalAlterConfigsRequest.AlterConfigsResource]
    validate_only: bool
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, resources: list[IncrementalAlterConfigsRequest.AlterConfigsResource] = ..., validate_only: bool = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class IncrementalAlterConfigsResponse(Struct):
    class AlterConfigsResourceResponse(Struct):
        error_code: int
        error_message: str | None
        resource_type: int
        resource_name: str
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, error_code: int = ..., error_message: str | None = ..., resource_type: int = ..., resource_name: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    responses: list[IncrementalAlterConfigsResponse.AlterConfigsResourceResponse]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., responses: list[IncrementalAlterConfigsResponse.AlterConfigsResourceResponse] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class InitProducerIdRequest(Struct):
    transactional_id: str | None
    transaction_timeout_ms: int
    producer_id: int
    producer_epoch: int
    enable2_pc: bool
    keep_prepared_txn: bool
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, transactional_id: str | None = ..., transaction_timeout_ms: int = ..., producer_id: int = ..., producer_epoch: int = ..., enable2_pc: bool = ..., keep_prepared_txn: bool = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class InitProducerIdResponse(Struct):
    throttle_time_ms: int
    error_code: int
    producer_id: int
    producer_epoch: int
    ongoing_txn_producer_id: int
    ongoing_txn_producer_epoch: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., producer_id: int = ..., producer_epoch: int = ..., ongoing_txn_producer_id: int = ..., ongoing_txn_producer_epoch: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class InitializeShareGroupStateRequest(Struct):
    class PartitionData(Struct):
        partition: int
        state_epoch: int
        start_offset: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition: int = ..., state_epoch: int = ..., start_offset: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class InitializeStateData(Struct):
        topic_id: bytes
        partitions: list[InitializeShareGroupStateRequest.PartitionData]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id: bytes = ..., partitions: list[InitializeShareGroupStateRequest.PartitionData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    group_id: str
    topics: list[InitializeShareGroupStateRequest.InitializeStateData]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., topics: list[InitializeShareGroupStateRequest.InitializeStateData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class InitializeShareGroupStateResponse(Struct):
    class PartitionResult(Struct):
        partition: int
        error_code: int
        error_message: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition: int = ..., error_code: int = ..., error_message: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class InitializeStateResult(Struct):
        topic_id: bytes
        partitions: list[InitializeShareGroupStateResponse.PartitionResult]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id: bytes = ..., partitions: list[InitializeShareGroupStateResponse.PartitionResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    results: list[InitializeShareGroupStateResponse.InitializeStateResult]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, results: list[InitializeShareGroupStateResponse.InitializeStateResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class JoinGroupRequest(Struct):
    class JoinGroupRequestProtocol(Struct):
        name: str
        metadata: bytes
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., metadata: bytes = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str
    protocols: list[JoinGroupRequest.JoinGroupRequestProtocol]
    reason: str | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., session_timeout_ms: int = ..., rebalance_timeout_ms: int = ..., member_id: str = ..., group_instance_id: str | None = ..., protocol_type: str = ..., protocols: list[JoinGroupRequest.JoinGroupRequestProtocol] = ..., reason: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class JoinGroupResponse(Struct):
    class JoinGroupResponseMember(Struct):
        member_id: str
        group_instance_id: str | None
        metadata: bytes
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, member_id: str = ..., group_instance_id: str | None = ..., metadata: bytes = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    leader: str
    skip_assignment: bool
    member_id: str
    members: list[JoinGroupResponse.JoinGroupResponseMember]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., generation_id: int = ..., protocol_type: str | None = ..., protocol_name: str | None = ..., leader: str = ..., skip_assignment: bool = ..., member_id: str = ..., members: list[JoinGroupResponse.JoinGroupResponseMember] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class KRaftVersionRecord(Struct):
    version: int
    k_raft_version: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, version: int = ..., k_raft_version: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class LeaderChangeMessage(Struct):
    class Voter(Struct):
        voter_id: int
        voter_directory_id: bytes
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, voter_id: int = ..., voter_directory_id: bytes = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    version: int
    leader_id: int
    voters: list[LeaderChangeMessage.Voter]
    granting_voters: list[LeaderChangeMessage.Voter]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, version: int = ..., leader_id: int = ..., voters: list[LeaderChangeMessage.Voter] = ..., granting_voters: list[LeaderChangeMessage.Voter] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class LeaveGroupRequest(Struct):
    class MemberIdentity(Struct):
        member_id: str
        group_instance_id: str | None
        reason: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, member_id: str = ..., group_instance_id: str | None = ..., reason: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    group_id: str
    member_id: str
    members: list[LeaveGroupRequest.MemberIdentity]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., member_id: str = ..., members: list[LeaveGroupRequest.MemberIdentity] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class LeaveGroupResponse(Struct):
    class MemberResponse(Struct):
        member_id: str
        group_instance_id: str | None
        error_code: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, member_id: str = ..., group_instance_id: str | None = ..., error_code: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    members: list[LeaveGroupResponse.MemberResponse]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., members: list[LeaveGroupResponse.MemberResponse] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class LegacyOffsetCommitKey(Struct):
    group: str
    topic: str
    partition: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group: str = ..., topic: str = ..., partition: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class LegacyOffsetCommitValue(Struct):
    offset: int
    metadata: str
    commit_timestamp: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, offset: int = ..., metadata: str = ..., commit_timestamp: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ListConfigResourcesRequest(Struct):
    resource_types: list[int]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, resource_types: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ListConfigResourcesResponse(Struct):
    class ConfigResource(Struct):
        resource_name: str
        resource_type: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, resource_name: str = ..., resource_type: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    config_resources: list[ListConfigResourcesResponse.ConfigResource]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., config_resources: list[ListConfigResourcesResponse.ConfigResource] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ListGroupsRequest(Struct):
    states_filter: list[str]
    types_filter: list[str]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, states_filter: list[str] = ..., types_filter: list[str] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ListGroupsResponse(Struct):
    class ListedGroup(Struct):
        group_id: str
        protocol_type: str
        group_state: str
        group_type: str
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, group_id: str = ..., protocol_type: str = ..., group_state: str = ..., group_type: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    groups: list[ListGroupsResponse.ListedGroup]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., groups: list[ListGroupsResponse.ListedGroup] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ListOffsetsRequest(Struct):
    class ListOffsetsPartition(Struct):
        partition_index: int
        current_leader_epoch: int
        timestamp: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., current_leader_epoch: int = ..., timestamp: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class ListOffsetsTopic(Struct):
        name: str
        partitions: list[ListOffsetsRequest.ListOffsetsPartition]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., partitions: list[ListOffsetsRequest.ListOffsetsPartition] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    replica_id: int
    isolation_level: int
    topics: list[ListOffsetsRequest.ListOffsetsTopic]
    timeout_ms: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, replica_id: int = ..., isolation_level: int = ..., topics: list[ListOffsetsRequest.ListOffsetsTopic] = ..., timeout_ms: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ListOffsetsResponse(Struct):
    class ListOffsetsPartitionResponse(Struct):
        partition_index: int
        error_code: int
        timestamp: int
        offset: int
        leader_epoch: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., error_code: int = ..., timestamp: int = ..., offset: int = ..., leader_epoch: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class ListOffsetsTopicResponse(Struct):
        name: str
        partitions: list[ListOffsetsResponse.ListOffsetsPartitionResponse]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., partitions: list[ListOffsetsResponse.ListOffsetsPartitionResponse] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    topics: list[ListOffsetsResponse.ListOffsetsTopicResponse]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., topics: list[ListOffsetsResponse.ListOffsetsTopicResponse] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ListPartitionReassignmentsRequest(Struct):
    class ListPartitionReassignmentsTopics(Struct):
        name: str
        partition_indexes: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., partition_indexes: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    timeout_ms: int
    topics: list[ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics] | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, timeout_ms: int = ..., topics: list[ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics] | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ListPartitionReassignmentsResponse(Struct):
    class OngoingPartitionReassignment(Struct):
        partition_index: int
        replicas: list[int]
        adding_replicas: list[int]
        removing_replicas: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., replicas: list[int] = ..., adding_replicas: list[int] = ..., removing_replicas: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class OngoingTopicReassignment(Struct):
        name: str
        partitions: list[ListPartitionReassignmentsResponse.OngoingPartitionReassignment]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., partitions: list[ListPartitionReassignmentsResponse.OngoingPartitionReassignment] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    topics: list[ListPartitionReassignmentsResponse.OngoingTopicReassignment]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., topics: list[ListPartitionReassignmentsResponse.OngoingTopicReassignment] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ListTransactionsRequest(Struct):
    state_filters: list[str]
    producer_id_filters: list[int]
    duration_filter: int
    transactional_id_pattern: str | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, state_filters: list[str] = ..., producer_id_filters: list[int] = ..., duration_filter: int = ..., transactional_id_pattern: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ListTransactionsResponse(Struct):
    class TransactionState(Struct):
        transactional_id: str
        producer_id: int
        transaction_state: str
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, transactional_id: str = ..., producer_id: int = ..., transaction_state: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    unknown_state_filters: list[str]
    transaction_states: list[ListTransactionsResponse.TransactionState]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., unknown_state_filters: list[str] = ..., transaction_states: list[ListTransactionsResponse.TransactionState] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class MetadataRequest(Struct):
    class MetadataRequestTopic(Struct):
        topic_id: bytes
        name: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id: bytes = ..., name: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    topics: list[MetadataRequest.MetadataRequestTopic] | None
    allow_auto_topic_creation: bool
    include_cluster_authorized_operations: bool
    include_topic_authorized_operations: bool
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, topics: list[MetadataRequest.MetadataRequestTopic] | None = ..., allow_auto_topic_creation: bool = ..., include_cluster_authorized_operations: bool = ..., include_topic_authorized_operations: bool = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class MetadataResponse(Struct):
    class MetadataResponseBroker(Struct):
        node_id: int
        host: str
        port: int
        rack: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, node_id: int = ..., host: str = ..., port: int = ..., rack: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class MetadataResponsePartition(Struct):
        error_code: int
        partition_index: int
        leader_id: int
        leader_epoch: int
        replica_nodes: list[int]
        isr_nodes: list[int]
        offline_replicas: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, error_code: int = ..., partition_index: int = ..., leader_id: int = ..., leader_epoch: int = ..., replica_nodes: list[int] = ..., isr_nodes: list[int] = ..., offline_replicas: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class MetadataResponseTopic(Struct):
        error_code: int
        name: str | None
        topic_id: bytes
        is_internal: bool
        partitions: list[MetadataResponse.MetadataResponsePartition]
        topic_authorized_operations: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, error_code: int = ..., name: str | None = ..., topic_id: bytes = ..., is_internal: bool = ..., partitions: list[MetadataResponse.MetadataResponsePartition] = ..., topic_authorized_operations: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    brokers: list[MetadataResponse.MetadataResponseBroker]
    cluster_id: str | None
    controller_id: int
    topics: list[MetadataResponse.MetadataResponseTopic]
    cluster_authorized_operations: int
    error_code: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., brokers: list[MetadataResponse.MetadataResponseBroker] = ..., cluster_id: str | None = ..., controller_id: int = ..., topics: list[MetadataResponse.MetadataResponseTopic] = ..., cluster_authorized_operations: int = ..., error_code: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class NoOpRecord(Struct):
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class OffsetCommitKey(Struct):
    group: str
    topic: str
    partition: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group: str = ..., topic: str = ..., partition: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class OffsetCommitRequest(Struct):
    class OffsetCommitRequestPartition(Struct):
        partition_index: int
        committed_offset: int
        committed_leader_epoch: int
        committed_metadata: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., committed_offset: int = ..., committed_leader_epoch: int = ..., committed_metadata: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class OffsetCommitRequestTopic(Struct):
        name: str
        topic_id: bytes
        partitions: list[OffsetCommitRequest.OffsetCommitRequestPartition]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., topic_id: bytes = ..., partitions: list[OffsetCommitRequest.OffsetCommitRequestPartition] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    group_id: str
    generation_id_or_member_epoch: int
    member_id: str
    group_instance_id: str | None
    retention_time_ms: int
    topics: list[OffsetCommitRequest.OffsetCommitRequestTopic]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., generation_id_or_member_epoch: int = ..., member_id: str = ..., group_instance_id: str | None = ..., retention_time_ms: int = ..., topics: list[OffsetCommitRequest.OffsetCommitRequestTopic] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class OffsetCommitResponse(Struct):
    class OffsetCommitResponsePartition(Struct):
        partition_index: int
        error_code: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., error_code: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class OffsetCommitResponseTopic(Struct):
        name: str
        topic_id: bytes
        partitions: list[OffsetCommitResponse.OffsetCommitResponsePartition]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., topic_id: bytes = ..., partitions: list[OffsetCommitResponse.OffsetCommitResponsePartition] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    topics: list[OffsetCommitResponse.OffsetCommitResponseTopic]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., topics: list[OffsetCommitResponse.OffsetCommitResponseTopic] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class OffsetCommitValue(Struct):
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int
    topic_id: bytes
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, offset: int = ..., leader_epoch: int = ..., metadata: str = ..., commit_timestamp: int = ..., expire_timestamp: int = ..., topic_id: bytes = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class OffsetDeleteRequest(Struct):
    class OffsetDeleteRequestPartition(Struct):
        partition_index: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class OffsetDeleteRequestTopic(Struct):
        name: str
        partitions: list[OffsetDeleteRequest.OffsetDeleteRequestPartition]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., partitions: list[OffsetDeleteRequest.OffsetDeleteRequestPartition] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    group_id: str
    topics: list[OffsetDeleteRequest.OffsetDeleteRequestTopic]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., topics: list[OffsetDeleteRequest.OffsetDeleteRequestTopic] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class OffsetDeleteResponse(Struct):
    class OffsetDeleteResponsePartition(Struct):
        partition_index: int
        error_code: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., error_code: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class OffsetDeleteResponseTopic(Struct):
        name: str
        partitions: list[OffsetDeleteResponse.OffsetDeleteResponsePartition]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., partitions: list[OffsetDeleteResponse.OffsetDeleteResponsePartition] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    error_code: int
    throttle_time_ms: int
    topics: list[OffsetDeleteResponse.OffsetDeleteResponseTopic]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, error_code: int = ..., throttle_time_ms: int = ..., topics: list[OffsetDeleteResponse.OffsetDeleteResponseTopic] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class OffsetFetchRequest(Struct):
    class OffsetFetchRequestTopic(Struct):
        name: str
        partition_indexes: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., partition_indexes: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class OffsetFetchRequestTopics(Struct):
        name: str
        topic_id: bytes
        partition_indexes: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., topic_id: bytes = ..., partition_indexes: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class OffsetFetchRequestGroup(Struct):
        group_id: str
        member_id: str | None
        member_epoch: int
        topics: list[OffsetFetchRequest.OffsetFetchRequestTopics] | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, group_id: str = ..., member_id: str | None = ..., member_epoch: int = ..., topics: list[OffsetFetchRequest.OffsetFetchRequestTopics] | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    group_id: str
    topics: list[OffsetFetchRequest.OffsetFetchRequestTopic] | None
    groups: list[OffsetFetchRequest.OffsetFetchRequestGroup]
    require_stable: bool
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., topics: list[OffsetFetchRequest.OffsetFetchRequestTopic] | None = ..., groups: list[OffsetFetchRequest.OffsetFetchRequestGroup] = ..., require_stable: bool = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class OffsetFetchResponse(Struct):
    class OffsetFetchResponsePartition(Struct):
        partition_index: int
        committed_offset: int
        committed_leader_epoch: int
        metadata: str | None
        error_code: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., committed_offset: int = ..., committed_leader_epoch: int = ..., metadata: str | None = ..., error_code: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class OffsetFetchResponseTopic(Struct):
        name: str
        partitions: list[OffsetFetchResponse.OffsetFetchResponsePartition]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., partitions: list[OffsetFetchResponse.OffsetFetchResponsePartition] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class OffsetFetchResponsePartitions(Struct):
        partition_index: int
        committed_offset: int
        committed_leader_epoch: int
        metadata: str | None
        error_code: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., committed_offset: int = ..., committed_leader_epoch: int = ..., metadata: str | None = ..., error_code: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class OffsetFetchResponseTopics(Struct):
        name: str
        topic_id: bytes
        partitions: list[OffsetFetchResponse.OffsetFetchResponsePartitions]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., topic_id: bytes = ..., partitions: list[OffsetFetchResponse.OffsetFetchResponsePartitions] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class OffsetFetchResponseGroup(Struct):
        group_id: str
        topics: list[OffsetFetchResponse.OffsetFetchResponseTopics]
        error_code: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, group_id: str = ..., topics: list[OffsetFetchResponse.OffsetFetchResponseTopics] = ..., error_code: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    topics: list[OffsetFetchResponse.OffsetFetchResponseTopic]
    error_code: int
    groups: list[OffsetFetchResponse.OffsetFetchResponseGroup]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., topics: list[OffsetFetchResponse.OffsetFetchResponseTopic] = ..., error_code: int = ..., groups: list[OffsetFetchResponse.OffsetFetchResponseGroup] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class OffsetForLeaderEpochRequest(Struct):
    class OffsetForLeaderPartition(Struct):
        partition: int
        current_leader_epoch: int
        leader_epoch: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition: int = ..., current_leader_epoch: int = ..., leader_epoch: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class OffsetForLeaderTopic(Struct):
        topic: str
        partitions: list[OffsetForLeaderEpochRequest.OffsetForLeaderPartition]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic: str = ..., partitions: list[OffsetForLeaderEpochRequest.OffsetForLeaderPartition] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    replica_id: int
    topics: list[OffsetForLeaderEpochRequest.OffsetForLeaderTopic]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, replica_id: int = ..., topics: list[OffsetForLeaderEpochRequest.OffsetForLeaderTopic] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class OffsetForLeaderEpochResponse(Struct):
    class EpochEndOffset(Struct):
        error_code: int
        partition: int
        leader_epoch: int
        end_offset: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, error_code: int = ..., partition: int = ..., leader_epoch: int = ..., end_offset: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class OffsetForLeaderTopicResult(Struct):
        topic: str
        partitions: list[OffsetForLeaderEpochResponse.EpochEndOffset]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic: str = ..., partitions: list[OffsetForLeaderEpochResponse.EpochEndOffset] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    topics: list[OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., topics: list[OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class PartitionChangeRecord(Struct):
    partition_id: int
    topic_id: bytes
    isr: list[int] | None
    leader: int
    replicas: list[int] | None
    removing_replicas: list[int] | None
    adding_replicas: list[int] | None
    leader_recovery_state: int
    directories: list[bytes] | None
    eligible_leader_replicas: list[int] | None
    last_known_elr: list[int] | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, partition_id: int = ..., topic_id: bytes = ..., isr: list[int] | None = ..., leader: int = ..., replicas: list[int] | None = ..., removing_replicas: list[int] | None = ..., adding_replicas: list[int] | None = ..., leader_recovery_state: int = ..., directories: list[bytes] | None = ..., eligible_leader_replicas: list[int] | None = ..., last_known_elr: list[int] | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class PartitionRecord(Struct):
    partition_id: int
    topic_id: bytes
    replicas: list[int]
    isr: list[int]
    removing_replicas: list[int]
    adding_replicas: list[int]
    leader: int
    leader_recovery_state: int
    leader_epoch: int
    partition_epoch: int
    directories: list[bytes]
    eligible_leader_replicas: list[int] | None
    last_known_elr: list[int] | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, partition_id: int = ..., topic_id: bytes = ..., replicas: list[int] = ..., isr: list[int] = ..., removing_replicas: list[int] = ..., adding_replicas: list[int] = ..., leader: int = ..., leader_recovery_state: int = ..., leader_epoch: int = ..., partition_epoch: int = ..., directories: list[bytes] = ..., eligible_leader_replicas: list[int] | None = ..., last_known_elr: list[int] | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ProduceRequest(Struct):
    class PartitionProduceData(Struct):
        index: int
        records: Any
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, index: int = ..., records: Any = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TopicProduceData(Struct):
        name: str
        topic_id: bytes
        partition_data: list[ProduceRequest.PartitionProduceData]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., topic_id: bytes = ..., partition_data: list[ProduceRequest.PartitionProduceData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    transactional_id: str | None
    acks: int
    timeout_ms: int
    topic_data: list[ProduceRequest.TopicProduceData]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, transactional_id: str | None = ..., acks: int = ..., timeout_ms: int = ..., topic_data: list[ProduceRequest.TopicProduceData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ProduceResponse(Struct):
    class BatchIndexAndErrorMessage(Struct):
        batch_index: int
        batch_index_error_message: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, batch_index: int = ..., batch_index_error_message: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class LeaderIdAndEpoch(Struct):
        leader_id: int
        leader_epoch: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, leader_id: int = ..., leader_epoch: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class PartitionProduceResponse(Struct):
        index: int
        error_code: int
        base_offset: int
        log_append_time_ms: int
        log_start_offset: int
        record_errors: list[ProduceResponse.BatchIndexAndErrorMessage]
        error_message: str | None
        current_leader: ProduceResponse.LeaderIdAndEpoch
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, index: int = ..., error_code: int = ..., base_offset: int = ..., log_append_time_ms: int = ..., log_start_offset: int = ..., record_errors: list[ProduceResponse.BatchIndexAndErrorMessage] = ..., error_message: str | None = ..., current_leader: ProduceResponse.LeaderIdAndEpoch = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TopicProduceResponse(Struct):
        name: str
        topic_id: bytes
        partition_responses: list[ProduceResponse.PartitionProduceResponse]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., topic_id: bytes = ..., partition_responses: list[ProduceResponse.PartitionProduceResponse] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class NodeEndpoint(Struct):
        node_id: int
        host: str
        port: int
        rack: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, node_id: int = ..., host: str = ..., port: int = ..., rack: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    responses: list[ProduceResponse.TopicProduceResponse]
    throttle_time_ms: int
    node_endpoints: list[ProduceResponse.NodeEndpoint]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, responses: list[ProduceResponse.TopicProduceResponse] = ..., throttle_time_ms: int = ..., node_endpoints: list[ProduceResponse.NodeEndpoint] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ProducerIdsRecord(Struct):
    broker_id: int
    broker_epoch: int
    next_producer_id: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, broker_id: int = ..., broker_epoch: int = ..., next_producer_id: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ProducerSnapshot(Struct):
    class ProducerEntry(Struct):
        producer_id: int
        epoch: int
        last_sequence: int
        last_offset: int
        offset_delta: int
        timestamp: int
        coordinator_epoch: int
        current_txn_first_offset: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, producer_id: int = ..., epoch: int = ..., last_sequence: int = ..., last_offset: int = ..., offset_delta: int = ..., timestamp: int = ..., coordinator_epoch: int = ..., current_txn_first_offset: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    crc: int
    producer_entries: list[ProducerSnapshot.ProducerEntry]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, crc: int = ..., producer_entries: list[ProducerSnapshot.ProducerEntry] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class PushTelemetryRequest(Struct):
    client_instance_id: bytes
    subscription_id: int
    terminating: bool
    compression_type: int
    metrics: bytes
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, client_instance_id: bytes = ..., subscription_id: int = ..., terminating: bool = ..., compression_type: int = ..., metrics: bytes = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class PushTelemetryResponse(Struct):
    throttle_time_ms: int
    error_code: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class QuorumStateData(Struct):
    class Voter(Struct):
        voter_id: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, voter_id: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    cluster_id: str
    leader_id: int
    leader_epoch: int
    voted_id: int
    voted_directory_id: bytes
    applied_offset: int
    current_voters: list[QuorumStateData.Voter] | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, cluster_id: str = ..., leader_id: int = ..., leader_epoch: int = ..., voted_id: int = ..., voted_directory_id: bytes = ..., applied_offset: int = ..., current_voters: list[QuorumStateData.Voter] | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ReadShareGroupStateRequest(Struct):
    class PartitionData(Struct):
        partition: int
        leader_epoch: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition: int = ..., leader_epoch: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class ReadStateData(Struct):
        topic_id: bytes
        partitions: list[ReadShareGroupStateRequest.PartitionData]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id: bytes = ..., partitions: list[ReadShareGroupStateRequest.PartitionData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    group_id: str
    topics: list[ReadShareGroupStateRequest.ReadStateData]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., topics: list[ReadShareGroupStateRequest.ReadStateData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ReadShareGroupStateResponse(Struct):
    class StateBatch(Struct):
        first_offset: int
        last_offset: int
        delivery_state: int
        delivery_count: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, first_offset: int = ..., last_offset: int = ..., delivery_state: int = ..., delivery_count: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class PartitionResult(Struct):
        partition: int
        error_code: int
        error_message: str | None
        state_epoch: int
        start_offset: int
        state_batches: list[ReadShareGroupStateResponse.StateBatch]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition: int = ..., error_code: int = ..., error_message: str | None = ..., state_epoch: int = ..., start_offset: int = ..., state_batches: list[ReadShareGroupStateResponse.StateBatch] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class ReadStateResult(Struct):
        topic_id: bytes
        partitions: list[ReadShareGroupStateResponse.PartitionResult]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id: bytes = ..., partitions: list[ReadShareGroupStateResponse.PartitionResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    results: list[ReadShareGroupStateResponse.ReadStateResult]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, results: list[ReadShareGroupStateResponse.ReadStateResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ReadShareGroupStateSummaryRequest(Struct):
    class PartitionData(Struct):
        partition: int
        leader_epoch: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition: int = ..., leader_epoch: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class ReadStateSummaryData(Struct):
        topic_id: bytes
        partitions: list[ReadShareGroupStateSummaryRequest.PartitionData]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id: bytes = ..., partitions: list[ReadShareGroupStateSummaryRequest.PartitionData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    group_id: str
    topics: list[ReadShareGroupStateSummaryRequest.ReadStateSummaryData]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., topics: list[ReadShareGroupStateSummaryRequest.ReadStateSummaryData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ReadShareGroupStateSummaryResponse(Struct):
    class PartitionResult(Struct):
        partition: int
        error_code: int
        error_message: str | None
        state_epoch: int
        leader_epoch: int
        start_offset: int
        delivery_complete_count: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition: int = ..., error_code: int = ..., error_message: str | None = ..., state_epoch: int = ..., leader_epoch: int = ..., start_offset: int = ..., delivery_complete_count: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class ReadStateSummaryResult(Struct):
        topic_id: bytes
        partitions: list[ReadShareGroupStateSummaryResponse.PartitionResult]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id: bytes = ..., partitions: list[ReadShareGroupStateSummaryResponse.PartitionResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    results: list[ReadShareGroupStateSummaryResponse.ReadStateSummaryResult]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, results: list[ReadShareGroupStateSummaryResponse.ReadStateSummaryResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class RegisterBrokerRecord(Struct):
    class BrokerEndpoint(Struct):
        name: str
        host: str
        port: int
        security_protocol: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., host: str = ..., port: int = ..., security_protocol: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class BrokerFeature(Struct):
        name: str
        min_supported_version: int
        max_supported_version: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., min_supported_version: int = ..., max_supported_version: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    broker_id: int
    is_migrating_zk_broker: bool
    incarnation_id: bytes
    broker_epoch: int
    end_points: list[RegisterBrokerRecord.BrokerEndpoint]
    features: list[RegisterBrokerRecord.BrokerFeature]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    log_dirs: list[bytes]
    cordoned_log_dirs: list[bytes] | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, broker_id: int = ..., is_migrating_zk_broker: bool = ..., incarnation_id: bytes = ..., broker_epoch: int = ..., end_points: list[RegisterBrokerRecord.BrokerEndpoint] = ..., features: list[RegisterBrokerRecord.BrokerFeature] = ..., rack: str | None = ..., fenced: bool = ..., in_controlled_shutdown: bool = ..., log_dirs: list[bytes] = ..., cordoned_log_dirs: list[bytes] | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class RegisterControllerRecord(Struct):
    class ControllerEndpoint(Struct):
        name: str
        host: str
        port: int
        security_protocol: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., host: str = ..., port: int = ..., security_protocol: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class ControllerFeature(Struct):
        name: str
        min_supported_version: int
        max_supported_version: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., min_supported_version: int = ..., max_supported_version: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    controller_id: int
    incarnation_id: bytes
    zk_migration_ready: bool
    end_points: list[RegisterControllerRecord.ControllerEndpoint]
    features: list[RegisterControllerRecord.ControllerFeature]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, controller_id: int = ..., incarnation_id: bytes = ..., zk_migration_ready: bool = ..., end_points: list[RegisterControllerRecord.ControllerEndpoint] = ..., features: list[RegisterControllerRecord.ControllerFeature] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class RemoteLogSegmentMetadataRecord(Struct):
    class TopicIdPartitionEntry(Struct):
        name: str
        id: bytes
        partition: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., id: bytes = ..., partition: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class RemoteLogSegmentIdEntry(Struct):
        topic_id_partition: RemoteLogSegmentMetadataRecord.TopicIdPartitionEntry
        id: bytes
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id_partition: RemoteLogSegmentMetadataRecord.TopicIdPartitionEntry = ..., id: bytes = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class SegmentLeaderEpochEntry(Struct):
        leader_epoch: int
        offset: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, leader_epoch: int = ..., offset: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    remote_log_segment_id: RemoteLogSegmentMetadataRecord.RemoteLogSegmentIdEntry
    start_offset: int
    end_offset: int
    broker_id: int
    max_timestamp_ms: int
    event_timestamp_ms: int
    segment_leader_epochs: list[RemoteLogSegmentMetadataRecord.SegmentLeaderEpochEntry]
    segment_size_in_bytes: int
    custom_metadata: bytes | None
    remote_log_segment_state: int
    txn_index_empty: bool
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, remote_log_segment_id: RemoteLogSegmentMetadataRecord.RemoteLogSegmentIdEntry = ..., start_offset: int = ..., end_offset: int = ..., broker_id: int = ..., max_timestamp_ms: int = ..., event_timestamp_ms: int = ..., segment_leader_epochs: list[RemoteLogSegmentMetadataRecord.SegmentLeaderEpochEntry] = ..., segment_size_in_bytes: int = ..., custom_metadata: bytes | None = ..., remote_log_segment_state: int = ..., txn_index_empty: bool = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class RemoteLogSegmentMetadataSnapshotRecord(Struct):
    class SegmentLeaderEpochEntry(Struct):
        leader_epoch: int
        offset: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, leader_epoch: int = ..., offset: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    segment_id: bytes
    start_offset: int
    end_offset: int
    broker_id: int
    max_timestamp_ms: int
    event_timestamp_ms: int
    segment_leader_epochs: list[RemoteLogSegmentMetadataSnapshotRecord.SegmentLeaderEpochEntry]
    segment_size_in_bytes: int
    custom_metadata: bytes | None
    remote_log_segment_state: int
    txn_index_empty: bool
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, segment_id: bytes = ..., start_offset: int = ..., end_offset: int = ..., broker_id: int = ..., max_timestamp_ms: int = ..., event_timestamp_ms: int = ..., segment_leader_epochs: list[RemoteLogSegmentMetadataSnapshotRecord.SegmentLeaderEpochEntry] = ..., segment_size_in_bytes: int = ..., custom_metadata: bytes | None = ..., remote_log_segment_state: int = ..., txn_index_empty: bool = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class RemoteLogSegmentMetadataUpdateRecord(Struct):
    class TopicIdPartitionEntry(Struct):
        name: str
        id: bytes
        partition: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., id: bytes = ..., partition: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class RemoteLogSegmentIdEntry(Struct):
        topic_id_partition: RemoteLogSegmentMetadataUpdateRecord.TopicIdPartitionEntry
        id: bytes
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id_partition: RemoteLogSegmentMetadataUpdateRecord.TopicIdPartitionEntry = ..., id: bytes = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    remote_log_segment_id: RemoteLogSegmentMetadataUpdateRecord.RemoteLogSegmentIdEntry
    broker_id: int
    event_timestamp_ms: int
    custom_metadata: bytes | None
    remote_log_segment_state: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, remote_log_segment_id: RemoteLogSegmentMetadataUpdateRecord.RemoteLogSegmentIdEntry = ..., broker_id: int = ..., event_timestamp_ms: int = ..., custom_metadata: bytes | None = ..., remote_log_segment_state: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class RemotePartitionDeleteMetadataRecord(Struct):
    class TopicIdPartitionEntry(Struct):
        name: str
        id: bytes
        partition: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., id: bytes = ..., partition: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    topic_id_partition: RemotePartitionDeleteMetadataRecord.TopicIdPartitionEntry
    broker_id: int
    event_timestamp_ms: int
    remote_partition_delete_state: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, topic_id_partition: RemotePartitionDeleteMetadataRecord.TopicIdPartitionEntry = ..., broker_id: int = ..., event_timestamp_ms: int = ..., remote_partition_delete_state: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class RemoveAccessControlEntryRecord(Struct):
    id: bytes
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, id: bytes = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class RemoveDelegationTokenRecord(Struct):
    token_id: str
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, token_id: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class RemoveRaftVoterRequest(Struct):
    cluster_id: str | None
    voter_id: int
    voter_directory_id: bytes
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, cluster_id: str | None = ..., voter_id: int = ..., voter_directory_id: bytes = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class RemoveRaftVoterResponse(Struct):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class RemoveTopicRecord(Struct):
    topic_id: bytes
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, topic_id: bytes = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class RemoveUserScramCredentialRecord(Struct):
    name: str
    mechanism: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, name: str = ..., mechanism: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class RenewDelegationTokenRequest(Struct):
    hmac: bytes
    renew_period_ms: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, hmac: bytes = ..., renew_period_ms: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class RenewDelegationTokenResponse(Struct):
    error_code: int
    expiry_timestamp_ms: int
    throttle_time_ms: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, error_code: int = ..., expiry_timestamp_ms: int = ..., throttle_time_ms: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class RequestHeader(Struct):
    request_api_key: int
    request_api_version: int
    correlation_id: int
    client_id: str | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, request_api_key: int = ..., request_api_version: int = ..., correlation_id: int = ..., client_id: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ResponseHeader(Struct):
    correlation_id: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, correlation_id: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class SaslAuthenticateRequest(Struct):
    auth_bytes: bytes
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, auth_bytes: bytes = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class SaslAuthenticateResponse(Struct):
    error_code: int
    error_message: str | None
    auth_bytes: bytes
    session_lifetime_ms: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, error_code: int = ..., error_message: str | None = ..., auth_bytes: bytes = ..., session_lifetime_ms: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class SaslHandshakeRequest(Struct):
    mechanism: str
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, mechanism: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class SaslHandshakeResponse(Struct):
    error_code: int
    mechanisms: list[str]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, error_code: int = ..., mechanisms: list[str] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ShareAcknowledgeRequest(Struct):
    class AcknowledgementBatch(Struct):
        first_offset: int
        last_offset: int
        acknowledge_types: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, first_offset: int = ..., last_offset: int = ..., acknowledge_types: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class AcknowledgePartition(Struct):
        partition_index: int
        acknowledgement_batches: list[ShareAcknowledgeRequest.AcknowledgementBatch]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., acknowledgement_batches: list[ShareAcknowledgeRequest.AcknowledgementBatch] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class AcknowledgeTopic(Struct):
        topic_id: bytes
        partitions: list[ShareAcknowledgeRequest.AcknowledgePartition]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id: bytes = ..., partitions: list[ShareAcknowledgeRequest.AcknowledgePartition] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    group_id: str | None
    member_id: str | None
    share_session_epoch: int
    is_renew_ack: bool
    topics: list[ShareAcknowledgeRequest.AcknowledgeTopic]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str | None = ..., member_id: str | None = ..., share_session_epoch: int = ..., is_renew_ack: bool = ..., topics: list[ShareAcknowledgeRequest.AcknowledgeTopic] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ShareAcknowledgeResponse(Struct):
    class LeaderIdAndEpoch(Struct):
        leader_id: int
        leader_epoch: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, leader_id: int = ..., leader_epoch: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class PartitionData(Struct):
        partition_index: int
        error_code: int
        error_message: str | None
        current_leader: ShareAcknowledgeResponse.LeaderIdAndEpoch
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., error_code: int = ..., error_message: str | None = ..., current_leader: ShareAcknowledgeResponse.LeaderIdAndEpoch = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class ShareAcknowledgeTopicResponse(Struct):
        topic_id: bytes
        partitions: list[ShareAcknowledgeResponse.PartitionData]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id: bytes = ..., partitions: list[ShareAcknowledgeResponse.PartitionData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class NodeEndpoint(Struct):
        node_id: int
        host: str
        port: int
        rack: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, node_id: int = ..., host: str = ..., port: int = ..., rack: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    acquisition_lock_timeout_ms: int
    responses: list[ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse]
    node_endpoints: list[ShareAcknowledgeResponse.NodeEndpoint]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., acquisition_lock_timeout_ms: int = ..., responses: list[ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse] = ..., node_endpoints: list[ShareAcknowledgeResponse.NodeEndpoint] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ShareFetchRequest(Struct):
    class AcknowledgementBatch(Struct):
        first_offset: int
        last_offset: int
        acknowledge_types: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, first_offset: int = ..., last_offset: int = ..., acknowledge_types: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class FetchPartition(Struct):
        partition_index: int
        partition_max_bytes: int
        acknowledgement_batches: list[ShareFetchRequest.AcknowledgementBatch]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., partition_max_bytes: int = ..., acknowledgement_batches: list[ShareFetchRequest.AcknowledgementBatch] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class FetchTopic(Struct):
        topic_id: bytes
        partitions: list[ShareFetchRequest.FetchPartition]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id: bytes = ..., partitions: list[ShareFetchRequest.FetchPartition] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class ForgottenTopic(Struct):
        topic_id: bytes
        partitions: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id: bytes = ..., partitions: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    group_id: str | None
    member_id: str | None
    share_session_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    share_acquire_mode: int
    is_renew_ack: bool
    topics: list[ShareFetchRequest.FetchTopic]
    forgotten_topics_data: list[ShareFetchRequest.ForgottenTopic]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str | None = ..., member_id: str | None = ..., share_session_epoch: int = ..., max_wait_ms: int = ..., min_bytes: int = ..., max_bytes: int = ..., max_records: int = ..., batch_size: int = ..., share_acquire_mode: int = ..., is_renew_ack: bool = ..., topics: list[ShareFetchRequest.FetchTopic] = ..., forgotten_topics_data: list[ShareFetchRequest.ForgottenTopic] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ShareFetchResponse(Struct):
    class LeaderIdAndEpoch(Struct):
        leader_id: int
        leader_epoch: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, leader_id: int = ..., leader_epoch: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class AcquiredRecords(Struct):
        first_offset: int
        last_offset: int
        delivery_count: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, first_offset: int = ..., last_offset: int = ..., delivery_count: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class PartitionData(Struct):
        partition_index: int
        error_code: int
        error_message: str | None
        acknowledge_error_code: int
        acknowledge_error_message: str | None
        current_leader: ShareFetchResponse.LeaderIdAndEpoch
        records: Any
        acquired_records: list[ShareFetchResponse.AcquiredRecords]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., error_code: int = ..., error_message: str | None = ..., acknowledge_error_code: int = ..., acknowledge_error_message: str | None = ..., current_leader: ShareFetchResponse.LeaderIdAndEpoch = ..., records: Any = ..., acquired_records: list[ShareFetchResponse.AcquiredRecords] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class ShareFetchableTopicResponse(Struct):
        topic_id: bytes
        partitions: list[ShareFetchResponse.PartitionData]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id: bytes = ..., partitions: list[ShareFetchResponse.PartitionData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class NodeEndpoint(Struct):
        node_id: int
        host: str
        port: int
        rack: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, node_id: int = ..., host: str = ..., port: int = ..., rack: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    acquisition_lock_timeout_ms: int
    responses: list[ShareFetchResponse.ShareFetchableTopicResponse]
    node_endpoints: list[ShareFetchResponse.NodeEndpoint]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., acquisition_lock_timeout_ms: int = ..., responses: list[ShareFetchResponse.ShareFetchableTopicResponse] = ..., node_endpoints: list[ShareFetchResponse.NodeEndpoint] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ShareGroupCurrentMemberAssignmentKey(Struct):
    group_id: str
    member_id: str
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., member_id: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ShareGroupCurrentMemberAssignmentValue(Struct):
    class TopicPartitions(Struct):
        topic_id: bytes
        partitions: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id: bytes = ..., partitions: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: list[ShareGroupCurrentMemberAssignmentValue.TopicPartitions]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, member_epoch: int = ..., previous_member_epoch: int = ..., state: int = ..., assigned_partitions: list[ShareGroupCurrentMemberAssignmentValue.TopicPartitions] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ShareGroupDescribeRequest(Struct):
    group_ids: list[str]
    include_authorized_operations: bool
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_ids: list[str] = ..., include_authorized_operations: bool = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ShareGroupDescribeResponse(Struct):
    class TopicPartitions(Struct):
        topic_id: bytes
        topic_name: str
        partitions: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id: bytes = ..., topic_name: str = ..., partitions: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class Assignment(Struct):
        topic_partitions: list[ShareGroupDescribeResponse.TopicPartitions]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_partitions: list[ShareGroupDescribeResponse.TopicPartitions] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class Member(Struct):
        member_id: str
        rack_id: str | None
        member_epoch: int
        client_id: str
        client_host: str
        subscribed_topic_names: list[str]
        assignment: ShareGroupDescribeResponse.Assignment
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, member_id: str = ..., rack_id: str | None = ..., member_epoch: int = ..., client_id: str = ..., client_host: str = ..., subscribed_topic_names: list[str] = ..., assignment: ShareGroupDescribeResponse.Assignment = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class DescribedGroup(Struct):
        error_code: int
        error_message: str | None
        group_id: str
        group_state: str
        group_epoch: int
        assignment_epoch: int
        assignor_name: str
        members: list[ShareGroupDescribeResponse.Member]
        authorized_operations: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, error_code: int = ..., error_message: str | None = ..., group_id: str = ..., group_state: str = ..., group_epoch: int = ..., assignment_epoch: int = ..., assignor_name: str = ..., members: list[ShareGroupDescribeResponse.Member] = ..., authorized_operations: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    groups: list[ShareGroupDescribeResponse.DescribedGroup]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., groups: list[ShareGroupDescribeResponse.DescribedGroup] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ShareGroupHeartbeatRequest(Struct):
    group_id: str
    member_id: str
    member_epoch: int
    rack_id: str | None
    subscribed_topic_names: list[str] | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., member_id: str = ..., member_epoch: int = ..., rack_id: str | None = ..., subscribed_topic_names: list[str] | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ShareGroupHeartbeatResponse(Struct):
    class TopicPartitions(Struct):
        topic_id: bytes
        partitions: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id: bytes = ..., partitions: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class Assignment(Struct):
        topic_partitions: list[ShareGroupHeartbeatResponse.TopicPartitions]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_partitions: list[ShareGroupHeartbeatResponse.TopicPartitions] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    member_id: str | None
    member_epoch: int
    heartbeat_interval_ms: int
    assignment: ShareGroupHeartbeatResponse.Assignment | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., member_id: str | None = ..., member_epoch: int = ..., heartbeat_interval_ms: int = ..., assignment: ShareGroupHeartbeatResponse.Assignment | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ShareGroupMemberMetadataKey(Struct):
    group_id: str
    member_id: str
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., member_id: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ShareGroupMemberMetadataValue(Struct):
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, rack_id: str | None = ..., client_id: str = ..., client_host: str = ..., subscribed_topic_names: list[str] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ShareGroupMetadataKey(Struct):
    group_id: str
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ShareGroupMetadataValue(Struct):
    epoch: int
    metadata_hash: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, epoch: int = ..., metadata_hash: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ShareGroupStatePartitionMetadataKey(Struct):
    group_id: str
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ShareGroupStatePartitionMetadataValue(Struct):
    class TopicPartitionsInfo(Struct):
        topic_id: bytes
        topic_name: str
        partitions: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id: bytes = ..., topic_name: str = ..., partitions: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TopicInfo(Struct):
        topic_id: bytes
        topic_name: str
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id: bytes = ..., topic_name: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    initializing_topics: list[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo]
    initialized_topics: list[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo]
    deleting_topics: list[ShareGroupStatePartitionMetadataValue.TopicInfo]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, initializing_topics: list[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo] = ..., initialized_topics: list[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo] = ..., deleting_topics: list[ShareGroupStatePartitionMetadataValue.TopicInfo] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ShareGroupTargetAssignmentMemberKey(Struct):
    group_id: str
    member_id: str
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., member_id: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ShareGroupTargetAssignmentMemberValue(Struct):
    class TopicPartition(Struct):
        topic_id: bytes
        partitions: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id: bytes = ..., partitions: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    topic_partitions: list[ShareGroupTargetAssignmentMemberValue.TopicPartition]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, topic_partitions: list[ShareGroupTargetAssignmentMemberValue.TopicPartition] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ShareGroupTargetAssignmentMetadataKey(Struct):
    group_id: str
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ShareGroupTargetAssignmentMetadataValue(Struct):
    assignment_epoch: int
    assignment_timestamp: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, assignment_epoch: int = ..., assignment_timestamp: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ShareSnapshotKey(Struct):
    group_id: str
    topic_id: bytes
    partition: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., topic_id: bytes = ..., partition: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ShareSnapshotValue(Struct):
    class StateBatch(Struct):
        first_offset: int
        last_offset: int
        delivery_state: int
        delivery_count: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, first_offset: int = ..., last_offset: int = ..., delivery_state: int = ..., delivery_count: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    create_timestamp: int
    write_timestamp: int
    state_batches: list[ShareSnapshotValue.StateBatch]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, snapshot_epoch: int = ..., state_epoch: int = ..., leader_epoch: int = ..., start_offset: int = ..., delivery_complete_count: int = ..., create_timestamp: int = ..., write_timestamp: int = ..., state_batches: list[ShareSnapshotValue.StateBatch] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ShareUpdateKey(Struct):
    group_id: str
    topic_id: bytes
    partition: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., topic_id: bytes = ..., partition: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ShareUpdateValue(Struct):
    class StateBatch(Struct):
        first_offset: int
        last_offset: int
        delivery_state: int
        delivery_count: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, first_offset: int = ..., last_offset: int = ..., delivery_state: int = ..., delivery_count: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    state_batches: list[ShareUpdateValue.StateBatch]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, snapshot_epoch: int = ..., leader_epoch: int = ..., start_offset: int = ..., delivery_complete_count: int = ..., state_batches: list[ShareUpdateValue.StateBatch] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class SnapshotFooterRecord(Struct):
    version: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, version: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class SnapshotHeaderRecord(Struct):
    version: int
    last_contained_log_timestamp: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, version: int = ..., last_contained_log_timestamp: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class StreamsGroupCurrentMemberAssignmentKey(Struct):
    group_id: str
    member_id: str
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., member_id: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class StreamsGroupCurrentMemberAssignmentValue(Struct):
    class TaskIds(Struct):
        subtopology_id: str
        partitions: list[int]
        assignment_epochs: list[int] | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, subtopology_id: str = ..., partitions: list[int] = ..., assignment_epochs: list[int] | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    member_epoch: int
    previous_member_epoch: int
    state: int
    active_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]
    standby_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]
    warmup_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]
    active_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]
    standby_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]
    warmup_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, member_epoch: int = ..., previous_member_epoch: int = ..., state: int = ..., active_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ..., standby_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ..., warmup_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ..., active_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ..., standby_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ..., warmup_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class StreamsGroupDescribeRequest(Struct):
    group_ids: list[str]
    include_authorized_operations: bool
    include_topology_description: bool
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_ids: list[str] = ..., include_authorized_operations: bool = ..., include_topology_description: bool = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class StreamsGroupDescribeResponse(Struct):
    class KeyValue(Struct):
        key: str
        value: str
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, key: str = ..., value: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TopicInfo(Struct):
        name: str
        partitions: int
        replication_factor: int
        topic_configs: list[StreamsGroupDescribeResponse.KeyValue]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., partitions: int = ..., replication_factor: int = ..., topic_configs: list[StreamsGroupDescribeResponse.KeyValue] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class Subtopology(Struct):
        subtopology_id: str
        source_topics: list[str]
        repartition_sink_topics: list[str]
        state_changelog_topics: list[StreamsGroupDescribeResponse.TopicInfo]
        repartition_source_topics: list[StreamsGroupDescribeResponse.TopicInfo]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, subtopology_id: str = ..., source_topics: list[str] = ..., repartition_sink_topics: list[str] = ..., state_changelog_topics: list[StreamsGroupDescribeResponse.TopicInfo] = ..., repartition_source_topics: list[StreamsGroupDescribeResponse.TopicInfo] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class Topology(Struct):
        epoch: int
        subtopologies: list[StreamsGroupDescribeResponse.Subtopology] | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, epoch: int = ..., subtopologies: list[StreamsGroupDescribeResponse.Subtopology] | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class Endpoint(Struct):
        host: str
        port: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, host: str = ..., port: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TaskOffset(Struct):
        subtopology_id: str
        partition: int
        offset: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, subtopology_id: str = ..., partition: int = ..., offset: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TaskIds(Struct):
        subtopology_id: str
        partitions: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, subtopology_id: str = ..., partitions: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class Assignment(Struct):
        active_tasks: list[StreamsGroupDescribeResponse.TaskIds]
        standby_tasks: list[StreamsGroupDescribeResponse.TaskIds]
        warmup_tasks: list[StreamsGroupDescribeResponse.TaskIds]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, active_tasks: list[StreamsGroupDescribeResponse.TaskIds] = ..., standby_tasks: list[StreamsGroupDescribeResponse.TaskIds] = ..., warmup_tasks: list[StreamsGroupDescribeResponse.TaskIds] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class Member(Struct):
        member_id: str
        member_epoch: int
        instance_id: str | None
        rack_id: str | None
        client_id: str
        client_host: str
        topology_epoch: int
        process_id: str
        user_endpoint: StreamsGroupDescribeResponse.Endpoint | None
        client_tags: list[StreamsGroupDescribeResponse.KeyValue]
        task_offsets: list[StreamsGroupDescribeResponse.TaskOffset]
        task_end_offsets: list[StreamsGroupDescribeResponse.TaskOffset]
        assignment: StreamsGroupDescribeResponse.Assignment
        target_assignment: StreamsGroupDescribeResponse.Assignment
        is_classic: bool
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, member_id: str = ..., member_epoch: int = ..., instance_id: str | None = ..., rack_id: str | None = ..., client_id: str = ..., client_host: str = ..., topology_epoch: int = ..., process_id: str = ..., user_endpoint: StreamsGroupDescribeResponse.Endpoint | None = ..., client_tags: list[StreamsGroupDescribeResponse.KeyValue] = ..., task_offsets: list[StreamsGroupDescribeResponse.TaskOffset] = ..., task_end_offsets: list[StreamsGroupDescribeResponse.TaskOffset] = ..., assignment: StreamsGroupDescribeResponse.Assignment = ..., target_assignment: StreamsGroupDescribeResponse.Assignment = ..., is_classic: bool = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TopologyDescriptionNode(Struct):
        name: str
        node_type: int
        source_topics: list[str]
        sink_topic: str | None
        stores: list[str]
        successors: list[str]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., node_type: int = ..., source_topics: list[str] = ..., sink_topic: str | None = ..., stores: list[str] = ..., successors: list[str] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TopologyDescriptionSubtopology(Struct):
        subtopology_id: str
        nodes: list[StreamsGroupDescribeResponse.TopologyDescriptionNode]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, subtopology_id: str = ..., nodes: list[StreamsGroupDescribeResponse.TopologyDescriptionNode] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TopologyDescriptionGlobalStore(Struct):
        source: StreamsGroupDescribeResponse.TopologyDescriptionNode
        processor: StreamsGroupDescribeResponse.TopologyDescriptionNode
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, source: StreamsGroupDescribeResponse.TopologyDescriptionNode = ..., processor: StreamsGroupDescribeResponse.TopologyDescriptionNode = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TopologyDescription(Struct):
        subtopologies: list[StreamsGroupDescribeResponse.TopologyDescriptionSubtopology]
        global_stores: list[StreamsGroupDescribeResponse.TopologyDescriptionGlobalStore]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, subtopologies: list[StreamsGroupDescribeResponse.TopologyDescriptionSubtopology] = ..., global_stores: list[StreamsGroupDescribeResponse.TopologyDescriptionGlobalStore] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class DescribedGroup(Struct):
        error_code: int
        error_message: str | None
        group_id: str
        group_state: str
        group_epoch: int
        assignment_epoch: int
        topology: StreamsGroupDescribeResponse.Topology | None
        members: list[StreamsGroupDescribeResponse.Member]
        authorized_operations: int
        topology_description: StreamsGroupDescribeResponse.TopologyDescription | None
        topology_description_status: int
        assignor_name: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, error_code: int = ..., error_message: str | None = ..., group_id: str = ..., group_state: str = ..., group_epoch: int = ..., assignment_epoch: int = ..., topology: StreamsGroupDescribeResponse.Topology | None = ..., members: list[StreamsGroupDescribeResponse.Member] = ..., authorized_operations: int = ..., topology_description: StreamsGroupDescribeResponse.TopologyDescription | None = ..., topology_description_status: int = ..., assignor_name: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    groups: list[StreamsGroupDescribeResponse.DescribedGroup]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., groups: list[StreamsGroupDescribeResponse.DescribedGroup] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class StreamsGroupHeartbeatRequest(Struct):
    class KeyValue(Struct):
        key: str
        value: str
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, key: str = ..., value: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TopicInfo(Struct):
        name: str
        partitions: int
        replication_factor: int
        topic_configs: list[StreamsGroupHeartbeatRequest.KeyValue]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., partitions: int = ..., replication_factor: int = ..., topic_configs: list[StreamsGroupHeartbeatRequest.KeyValue] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class CopartitionGroup(Struct):
        source_topics: list[int]
        source_topic_regex: list[int]
        repartition_source_topics: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, source_topics: list[int] = ..., source_topic_regex: list[int] = ..., repartition_source_topics: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class Subtopology(Struct):
        subtopology_id: str
        source_topics: list[str]
        source_topic_regex: list[str]
        state_changelog_topics: list[StreamsGroupHeartbeatRequest.TopicInfo]
        repartition_sink_topics: list[str]
        repartition_source_topics: list[StreamsGroupHeartbeatRequest.TopicInfo]
        copartition_groups: list[StreamsGroupHeartbeatRequest.CopartitionGroup]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, subtopology_id: str = ..., source_topics: list[str] = ..., source_topic_regex: list[str] = ..., state_changelog_topics: list[StreamsGroupHeartbeatRequest.TopicInfo] = ..., repartition_sink_topics: list[str] = ..., repartition_source_topics: list[StreamsGroupHeartbeatRequest.TopicInfo] = ..., copartition_groups: list[StreamsGroupHeartbeatRequest.CopartitionGroup] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class Topology(Struct):
        epoch: int
        subtopologies: list[StreamsGroupHeartbeatRequest.Subtopology]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, epoch: int = ..., subtopologies: list[StreamsGroupHeartbeatRequest.Subtopology] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TaskIds(Struct):
        subtopology_id: str
        partitions: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, subtopology_id: str = ..., partitions: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class Endpoint(Struct):
        host: str
        port: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, host: str = ..., port: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TaskOffset(Struct):
        subtopology_id: str
        partition: int
        offset: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, subtopology_id: str = ..., partition: int = ..., offset: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    group_id: str
    member_id: str
    member_epoch: int
    endpoint_information_epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    topology: StreamsGroupHeartbeatRequest.Topology | None
    active_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None
    standby_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None
    warmup_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None
    process_id: str | None
    user_endpoint: StreamsGroupHeartbeatRequest.Endpoint | None
    client_tags: list[StreamsGroupHeartbeatRequest.KeyValue] | None
    task_offsets: list[StreamsGroupHeartbeatRequest.TaskOffset] | None
    task_end_offsets: list[StreamsGroupHeartbeatRequest.TaskOffset] | None
    shutdown_application: bool
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., member_id: str = ..., member_epoch: int = ..., endpoint_information_epoch: int = ..., instance_id: str | None = ..., rack_id: str | None = ..., rebalance_timeout_ms: int = ..., topology: StreamsGroupHeartbeatRequest.Topology | None = ..., active_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None = ..., standby_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None = ..., warmup_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None = ..., process_id: str | None = ..., user_endpoint: StreamsGroupHeartbeatRequest.Endpoint | None = ..., client_tags: list[StreamsGroupHeartbeatRequest.KeyValue] | None = ..., task_offsets: list[StreamsGroupHeartbeatRequest.TaskOffset] | None = ..., task_end_offsets: list[StreamsGroupHeartbeatRequest.TaskOffset] | None = ..., shutdown_application: bool = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class StreamsGroupHeartbeatResponse(Struct):
    class Status(Struct):
        status_code: int
        status_detail: str
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, status_code: int = ..., status_detail: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TaskIds(Struct):
        subtopology_id: str
        partitions: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, subtopology_id: str = ..., partitions: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class Endpoint(Struct):
        host: str
        port: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, host: str = ..., port: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TopicPartition(Struct):
        topic: str
        partitions: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic: str = ..., partitions: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class EndpointToPartitions(Struct):
        user_endpoint: StreamsGroupHeartbeatResponse.Endpoint
        active_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition]
        standby_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, user_endpoint: StreamsGroupHeartbeatResponse.Endpoint = ..., active_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition] = ..., standby_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int
    acceptable_recovery_lag_legacy: int
    task_offset_interval_ms: int
    acceptable_recovery_lag: int
    status: list[StreamsGroupHeartbeatResponse.Status] | None
    active_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None
    standby_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None
    warmup_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None
    topology_description_required: bool
    endpoint_information_epoch: int
    partitions_by_user_endpoint: list[StreamsGroupHeartbeatResponse.EndpointToPartitions] | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., member_id: str = ..., member_epoch: int = ..., heartbeat_interval_ms: int = ..., acceptable_recovery_lag_legacy: int = ..., task_offset_interval_ms: int = ..., acceptable_recovery_lag: int = ..., status: list[StreamsGroupHeartbeatResponse.Status] | None = ..., active_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None = ..., standby_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None = ..., warmup_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None = ..., topology_description_required: bool = ..., endpoint_information_epoch: int = ..., partitions_by_user_endpoint: list[StreamsGroupHeartbeatResponse.EndpointToPartitions] | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class StreamsGroupMemberMetadataKey(Struct):
    group_id: str
    member_id: str
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., member_id: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class StreamsGroupMemberMetadataValue(Struct):
    class Endpoint(Struct):
        host: str
        port: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, host: str = ..., port: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class KeyValue(Struct):
        key: str
        value: str
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, key: str = ..., value: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    topology_epoch: int
    process_id: str
    user_endpoint: StreamsGroupMemberMetadataValue.Endpoint | None
    client_tags: list[StreamsGroupMemberMetadataValue.KeyValue]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, instance_id: str | None = ..., rack_id: str | None = ..., client_id: str = ..., client_host: str = ..., rebalance_timeout_ms: int = ..., topology_epoch: int = ..., process_id: str = ..., user_endpoint: StreamsGroupMemberMetadataValue.Endpoint | None = ..., client_tags: list[StreamsGroupMemberMetadataValue.KeyValue] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class StreamsGroupMetadataKey(Struct):
    group_id: str
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class StreamsGroupMetadataValue(Struct):
    class LastAssignmentConfig(Struct):
        key: str
        value: str
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, key: str = ..., value: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    epoch: int
    metadata_hash: int
    validated_topology_epoch: int
    last_assignment_configs: list[StreamsGroupMetadataValue.LastAssignmentConfig] | None
    stored_description_topology_epoch: int
    failed_description_topology_epoch: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, epoch: int = ..., metadata_hash: int = ..., validated_topology_epoch: int = ..., last_assignment_configs: list[StreamsGroupMetadataValue.LastAssignmentConfig] | None = ..., stored_description_topology_epoch: int = ..., failed_description_topology_epoch: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class StreamsGroupTargetAssignmentMemberKey(Struct):
    group_id: str
    member_id: str
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., member_id: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class StreamsGroupTargetAssignmentMemberValue(Struct):
    class TaskIds(Struct):
        subtopology_id: str
        partitions: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, subtopology_id: str = ..., partitions: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    active_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds]
    standby_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds]
    warmup_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, active_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds] = ..., standby_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds] = ..., warmup_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class StreamsGroupTargetAssignmentMetadataKey(Struct):
    group_id: str
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class StreamsGroupTargetAssignmentMetadataValue(Struct):
    assignment_epoch: int
    assignment_timestamp: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, assignment_epoch: int = ..., assignment_timestamp: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class StreamsGroupTopologyDescriptionUpdateRequest(Struct):
    class TopologyDescriptionNode(Struct):
        name: str
        node_type: int
        source_topics: list[str]
        sink_topic: str | None
        stores: list[str]
        successors: list[str]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., node_type: int = ..., source_topics: list[str] = ..., sink_topic: str | None = ..., stores: list[str] = ..., successors: list[str] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TopologyDescriptionSubtopology(Struct):
        subtopology_id: str
        nodes: list[StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, subtopology_id: str = ..., nodes: list[StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TopologyDescriptionGlobalStore(Struct):
        source: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode
        processor: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, source: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode = ..., processor: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TopologyDescription(Struct):
        subtopologies: list[StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionSubtopology]
        global_stores: list[StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionGlobalStore]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, subtopologies: list[StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionSubtopology] = ..., global_stores: list[StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionGlobalStore] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    group_id: str
    member_id: str
    topology_epoch: int
    topology_description: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescription
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., member_id: str = ..., topology_epoch: int = ..., topology_description: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescription = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class StreamsGroupTopologyDescriptionUpdateResponse(Struct):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class StreamsGroupTopologyKey(Struct):
    group_id: str
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class StreamsGroupTopologyValue(Struct):
    class TopicConfig(Struct):
        key: str
        value: str
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, key: str = ..., value: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TopicInfo(Struct):
        name: str
        partitions: int
        replication_factor: int
        topic_configs: list[StreamsGroupTopologyValue.TopicConfig]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., partitions: int = ..., replication_factor: int = ..., topic_configs: list[StreamsGroupTopologyValue.TopicConfig] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class CopartitionGroup(Struct):
        source_topics: list[int]
        source_topic_regex: list[int]
        repartition_source_topics: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, source_topics: list[int] = ..., source_topic_regex: list[int] = ..., repartition_source_topics: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class Subtopology(Struct):
        subtopology_id: str
        source_topics: list[str]
        source_topic_regex: list[str]
        state_changelog_topics: list[StreamsGroupTopologyValue.TopicInfo]
        repartition_sink_topics: list[str]
        repartition_source_topics: list[StreamsGroupTopologyValue.TopicInfo]
        copartition_groups: list[StreamsGroupTopologyValue.CopartitionGroup]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, subtopology_id: str = ..., source_topics: list[str] = ..., source_topic_regex: list[str] = ..., state_changelog_topics: list[StreamsGroupTopologyValue.TopicInfo] = ..., repartition_sink_topics: list[str] = ..., repartition_source_topics: list[StreamsGroupTopologyValue.TopicInfo] = ..., copartition_groups: list[StreamsGroupTopologyValue.CopartitionGroup] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    epoch: int
    subtopologies: list[StreamsGroupTopologyValue.Subtopology]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, epoch: int = ..., subtopologies: list[StreamsGroupTopologyValue.Subtopology] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class SyncGroupRequest(Struct):
    class SyncGroupRequestAssignment(Struct):
        member_id: str
        assignment: bytes
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, member_id: str = ..., assignment: bytes = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: list[SyncGroupRequest.SyncGroupRequestAssignment]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., generation_id: int = ..., member_id: str = ..., group_instance_id: str | None = ..., protocol_type: str | None = ..., protocol_name: str | None = ..., assignments: list[SyncGroupRequest.SyncGroupRequestAssignment] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class SyncGroupResponse(Struct):
    throttle_time_ms: int
    error_code: int
    protocol_type: str | None
    protocol_name: str | None
    assignment: bytes
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., protocol_type: str | None = ..., protocol_name: str | None = ..., assignment: bytes = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class TopicRecord(Struct):
    name: str
    topic_id: bytes
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, name: str = ..., topic_id: bytes = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class TransactionLogKey(Struct):
    transactional_id: str
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, transactional_id: str = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class TransactionLogValue(Struct):
    class PartitionsSchema(Struct):
        topic: str
        partition_ids: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic: str = ..., partition_ids: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    producer_id: int
    previous_producer_id: int
    next_producer_id: int
    producer_epoch: int
    next_producer_epoch: int
    transaction_timeout_ms: int
    transaction_status: int
    transaction_partitions: list[TransactionLogValue.PartitionsSchema] | None
    transaction_last_update_timestamp_ms: int
    transaction_start_timestamp_ms: int
    client_transaction_version: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, producer_id: int = ..., previous_producer_id: int = ..., next_producer_id: int = ..., producer_epoch: int = ..., next_producer_epoch: int = ..., transaction_timeout_ms: int = ..., transaction_status: int = ..., transaction_partitions: list[TransactionLogValue.PartitionsSchema] | None = ..., transaction_last_update_timestamp_ms: int = ..., transaction_start_timestamp_ms: int = ..., client_transaction_version: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class TxnOffsetCommitRequest(Struct):
    class TxnOffsetCommitRequestPartition(Struct):
        partition_index: int
        committed_offset: int
        committed_leader_epoch: int
        committed_metadata: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., committed_offset: int = ..., committed_leader_epoch: int = ..., committed_metadata: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TxnOffsetCommitRequestTopic(Struct):
        name: str
        topic_id: bytes
        partitions: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., topic_id: bytes = ..., partitions: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    transactional_id: str
    group_id: str
    producer_id: int
    producer_epoch: int
    generation_id_or_member_epoch: int
    member_id: str
    group_instance_id: str | None
    topics: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, transactional_id: str = ..., group_id: str = ..., producer_id: int = ..., producer_epoch: int = ..., generation_id_or_member_epoch: int = ..., member_id: str = ..., group_instance_id: str | None = ..., topics: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class TxnOffsetCommitResponse(Struct):
    class TxnOffsetCommitResponsePartition(Struct):
        partition_index: int
        error_code: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., error_code: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TxnOffsetCommitResponseTopic(Struct):
        name: str
        topic_id: bytes
        partitions: list[TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., topic_id: bytes = ..., partitions: list[TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    topics: list[TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., topics: list[TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class UnfenceBrokerRecord(Struct):
    id: int
    epoch: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, id: int = ..., epoch: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class UnregisterBrokerRecord(Struct):
    broker_id: int
    broker_epoch: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, broker_id: int = ..., broker_epoch: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class UnregisterBrokerRequest(Struct):
    broker_id: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, broker_id: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class UnregisterBrokerResponse(Struct):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class UnregisterControllerRecord(Struct):
    controller_id: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, controller_id: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class UnregisterControllerRequest(Struct):
    controller_id: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, controller_id: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class UnregisterControllerResponse(Struct):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class UpdateFeaturesRequest(Struct):
    class FeatureUpdateKey(Struct):
        feature: str
        max_version_level: int
        allow_downgrade: bool
        upgrade_type: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, feature: str = ..., max_version_level: int = ..., allow_downgrade: bool = ..., upgrade_type: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    timeout_ms: int
    feature_updates: list[UpdateFeaturesRequest.FeatureUpdateKey]
    validate_only: bool
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, timeout_ms: int = ..., feature_updates: list[UpdateFeaturesRequest.FeatureUpdateKey] = ..., validate_only: bool = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class UpdateFeaturesResponse(Struct):
    class UpdatableFeatureResult(Struct):
        feature: str
        error_code: int
        error_message: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, feature: str = ..., error_code: int = ..., error_message: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    results: list[UpdateFeaturesResponse.UpdatableFeatureResult]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., results: list[UpdateFeaturesResponse.UpdatableFeatureResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class UpdateRaftVoterRequest(Struct):
    class Listener(Struct):
        name: str
        host: str
        port: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., host: str = ..., port: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class KRaftVersionFeature(Struct):
        min_supported_version: int
        max_supported_version: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, min_supported_version: int = ..., max_supported_version: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    cluster_id: str | None
    current_leader_epoch: int
    voter_id: int
    voter_directory_id: bytes
    listeners: list[UpdateRaftVoterRequest.Listener]
    k_raft_version_feature: UpdateRaftVoterRequest.KRaftVersionFeature
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, cluster_id: str | None = ..., current_leader_epoch: int = ..., voter_id: int = ..., voter_directory_id: bytes = ..., listeners: list[UpdateRaftVoterRequest.Listener] = ..., k_raft_version_feature: UpdateRaftVoterRequest.KRaftVersionFeature = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class UpdateRaftVoterResponse(Struct):
    class CurrentLeader(Struct):
        leader_id: int
        leader_epoch: int
        host: str
        port: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, leader_id: int = ..., leader_epoch: int = ..., host: str = ..., port: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    current_leader: UpdateRaftVoterResponse.CurrentLeader
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, throttle_time_ms: int = ..., error_code: int = ..., current_leader: UpdateRaftVoterResponse.CurrentLeader = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class UserScramCredentialRecord(Struct):
    name: str
    mechanism: int
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, name: str = ..., mechanism: int = ..., salt: bytes = ..., stored_key: bytes = ..., server_key: bytes = ..., iterations: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class VoteRequest(Struct):
    class PartitionData(Struct):
        partition_index: int
        replica_epoch: int
        replica_id: int
        replica_directory_id: bytes
        voter_directory_id: bytes
        last_offset_epoch: int
        last_offset: int
        pre_vote: bool
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., replica_epoch: int = ..., replica_id: int = ..., replica_directory_id: bytes = ..., voter_directory_id: bytes = ..., last_offset_epoch: int = ..., last_offset: int = ..., pre_vote: bool = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TopicData(Struct):
        topic_name: str
        partitions: list[VoteRequest.PartitionData]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_name: str = ..., partitions: list[VoteRequest.PartitionData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    cluster_id: str | None
    voter_id: int
    topics: list[VoteRequest.TopicData]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, cluster_id: str | None = ..., voter_id: int = ..., topics: list[VoteRequest.TopicData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class VoteResponse(Struct):
    class PartitionData(Struct):
        partition_index: int
        error_code: int
        leader_id: int
        leader_epoch: int
        vote_granted: bool
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., error_code: int = ..., leader_id: int = ..., leader_epoch: int = ..., vote_granted: bool = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class TopicData(Struct):
        topic_name: str
        partitions: list[VoteResponse.PartitionData]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_name: str = ..., partitions: list[VoteResponse.PartitionData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class NodeEndpoint(Struct):
        node_id: int
        host: str
        port: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, node_id: int = ..., host: str = ..., port: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    error_code: int
    topics: list[VoteResponse.TopicData]
    node_endpoints: list[VoteResponse.NodeEndpoint]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, error_code: int = ..., topics: list[VoteResponse.TopicData] = ..., node_endpoints: list[VoteResponse.NodeEndpoint] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class VotersRecord(Struct):
    class Endpoint(Struct):
        name: str
        host: str
        port: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., host: str = ..., port: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class KRaftVersionFeature(Struct):
        min_supported_version: int
        max_supported_version: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, min_supported_version: int = ..., max_supported_version: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class Voter(Struct):
        voter_id: int
        voter_directory_id: bytes
        endpoints: list[VotersRecord.Endpoint]
        k_raft_version_feature: VotersRecord.KRaftVersionFeature
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, voter_id: int = ..., voter_directory_id: bytes = ..., endpoints: list[VotersRecord.Endpoint] = ..., k_raft_version_feature: VotersRecord.KRaftVersionFeature = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    version: int
    voters: list[VotersRecord.Voter]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, version: int = ..., voters: list[VotersRecord.Voter] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class WriteShareGroupStateRequest(Struct):
    class StateBatch(Struct):
        first_offset: int
        last_offset: int
        delivery_state: int
        delivery_count: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, first_offset: int = ..., last_offset: int = ..., delivery_state: int = ..., delivery_count: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class PartitionData(Struct):
        partition: int
        state_epoch: int
        leader_epoch: int
        start_offset: int
        delivery_complete_count: int
        state_batches: list[WriteShareGroupStateRequest.StateBatch]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition: int = ..., state_epoch: int = ..., leader_epoch: int = ..., start_offset: int = ..., delivery_complete_count: int = ..., state_batches: list[WriteShareGroupStateRequest.StateBatch] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class WriteStateData(Struct):
        topic_id: bytes
        partitions: list[WriteShareGroupStateRequest.PartitionData]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id: bytes = ..., partitions: list[WriteShareGroupStateRequest.PartitionData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    group_id: str
    topics: list[WriteShareGroupStateRequest.WriteStateData]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, group_id: str = ..., topics: list[WriteShareGroupStateRequest.WriteStateData] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class WriteShareGroupStateResponse(Struct):
    class PartitionResult(Struct):
        partition: int
        error_code: int
        error_message: str | None
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition: int = ..., error_code: int = ..., error_message: str | None = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class WriteStateResult(Struct):
        topic_id: bytes
        partitions: list[WriteShareGroupStateResponse.PartitionResult]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, topic_id: bytes = ..., partitions: list[WriteShareGroupStateResponse.PartitionResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    results: list[WriteShareGroupStateResponse.WriteStateResult]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, results: list[WriteShareGroupStateResponse.WriteStateResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class WriteTxnMarkersRequest(Struct):
    class WritableTxnMarkerTopic(Struct):
        name: str
        partition_indexes: list[int]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., partition_indexes: list[int] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class WritableTxnMarker(Struct):
        producer_id: int
        producer_epoch: int
        transaction_result: bool
        topics: list[WriteTxnMarkersRequest.WritableTxnMarkerTopic]
        coordinator_epoch: int
        transaction_version: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, producer_id: int = ..., producer_epoch: int = ..., transaction_result: bool = ..., topics: list[WriteTxnMarkersRequest.WritableTxnMarkerTopic] = ..., coordinator_epoch: int = ..., transaction_version: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    markers: list[WriteTxnMarkersRequest.WritableTxnMarker]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, markers: list[WriteTxnMarkersRequest.WritableTxnMarker] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class WriteTxnMarkersResponse(Struct):
    class WritableTxnMarkerPartitionResult(Struct):
        partition_index: int
        error_code: int
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, partition_index: int = ..., error_code: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class WritableTxnMarkerTopicResult(Struct):
        name: str
        partitions: list[WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, name: str = ..., partitions: list[WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    class WritableTxnMarkerResult(Struct):
        producer_id: int
        topics: list[WriteTxnMarkersResponse.WritableTxnMarkerTopicResult]
        unknown_tags: list[tuple[int, bytes]] | None
        def __init__(self, producer_id: int = ..., topics: list[WriteTxnMarkersResponse.WritableTxnMarkerTopicResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
    markers: list[WriteTxnMarkersResponse.WritableTxnMarkerResult]
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, markers: list[WriteTxnMarkersResponse.WritableTxnMarkerResult] = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...

class ZkMigrationStateRecord(Struct):
    zk_migration_state: int
    unknown_tags: list[tuple[int, bytes]] | None
    def __init__(self, zk_migration_state: int = ..., unknown_tags: list[tuple[int, bytes]] | None = ...) -> None: ...
