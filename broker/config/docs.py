"""One sentence about each topic key and each of ottla's own keys."""

from __future__ import annotations

from ...protocol.config_def import topic_synonyms

TOPIC_DOCS = {
    "cleanup.policy": "What happens to old segments: `delete`, `compact` (by key), both, or nothing (empty).",
    "compression.gzip.level": "The compression level of gzip when the broker compresses; -1 for the library's default.",
    "compression.lz4.level": "The compression level of lz4 when the broker compresses.",
    "compression.type": "The codec of stored batches; `producer` keeps the codec that the producer chose.",
    "compression.zstd.level": "The compression level of zstd when the broker compresses.",
    "delete.retention.ms": "How long a tombstone stays readable in a compacted log after its first compaction.",
    "errors.deadletterqueue.group.enable": "Whether share groups may use this topic as a dead-letter queue.",
    "file.delete.delay.ms": "How long the files of a deleted segment or topic stay on disk.",
    "flush.messages": "The number of records after which the log is synced to disk; acks=all waits for the sync.",
    "flush.ms": "The time in milliseconds after which written records are synced to disk.",
    "follower.replication.throttled.replicas": "Replicas whose replication is throttled on the follower's side.",
    "index.interval.bytes": "The approximate number of log bytes between two entries of the offset index.",
    "internal.segment.bytes": "A segment size below the public minimum, for tests.",
    "leader.replication.throttled.replicas": "Replicas whose replication is throttled on the leader's side.",
    "local.retention.bytes": "With remote storage, the bytes that stay on the local disk; -2 follows retention.bytes.",
    "local.retention.ms": "With remote storage, how long records stay on the local disk; -2 follows retention.ms.",
    "max.compaction.lag.ms": "The longest time until a record is compacted.",
    "max.decompressed.message.bytes": "The largest size of a batch after decompression, in bytes.",
    "max.message.bytes": "The largest batch that is accepted, in bytes as sent (compressed).",
    "message.timestamp.after.max.ms": "How far a record's timestamp may be in the future.",
    "message.timestamp.before.max.ms": "How far a record's timestamp may be in the past.",
    "message.timestamp.type": "Whether records keep the producer's timestamp or get the time of their append.",
    "min.cleanable.dirty.ratio": "The fraction of the log that must be uncompacted before the log is compacted.",
    "min.compaction.lag.ms": "The shortest time for which a record is not compacted.",
    "min.insync.replicas": "How many replicas must be in sync for acks=all to be accepted.",
    "preallocate": "Whether the files of new segments are allocated in advance.",
    "remote.copy.lag.bytes": "The largest lag of the copy to remote storage, in bytes.",
    "remote.copy.lag.ms": "The largest lag of the copy to remote storage, in milliseconds.",
    "remote.log.copy.disable": "Whether remote storage only serves reads.",
    "remote.log.delete.on.disable": "Whether remote data is deleted when remote storage is disabled.",
    "remote.storage.enable": "Whether the topic uses remote storage, which this broker does not have.",
    "retention.bytes": "The size of a partition above which old segments are deleted; -1 for no limit.",
    "retention.ms": "How long records are kept; -1 for no limit.",
    "segment.bytes": "The size at which a segment is rolled, in bytes.",
    "segment.index.bytes": "The largest size of a segment's index, in bytes.",
    "segment.jitter.ms": "The largest random reduction of the age at which segments are rolled.",
    "segment.ms": "The age at which a segment is rolled even if it is not full.",
    "unclean.leader.election.enable": "Whether a replica that is not in sync may become the leader.",
}

OWN_DOCS = {
    "ottla.buffered.bytes.max": (
        "How many bytes of incomplete requests and of unread replies all connections may hold; the connection that "
        "holds the most is closed."
    ),
    "ottla.connections.per.ip.max": (
        "How many connections one address may have; -1 for three quarters of what the limit of open files allows."
    ),
    "ottla.group.members.max": "How many members all groups may have.",
    "ottla.groups.max": "How many groups there may be.",
    "ottla.producers.per.partition.max": (
        "How many producer ids a partition remembers; the one that was silent for longest is forgotten."
    ),
    "ottla.cluster.id": "The id of a new cluster; random by default.",
    "ottla.client.metrics": (
        "Whether clients are offered to push their metrics (KIP-714): `lab` while the lab has a port, which shows "
        "them; `always`; or `never`, as a Kafka without a plug-in that takes them."
    ),
    "ottla.client.metrics.series.max": "How many time series that clients have pushed the broker keeps.",
    "ottla.delegation.token.renewers.max": "How many renewers a delegation token may have.",
    "ottla.delegation.tokens.max": "How many delegation tokens there may be.",
    "ottla.delegation.tokens.per.owner.max": "How many delegation tokens one principal may own.",
    "ottla.frame.max.bytes": "The largest request that carries no records, in bytes.",
    "ottla.reply.max.bytes": (
        "The largest reply that carries no records, in bytes; a larger reply closes the connection."
    ),
    "ottla.group.settle": (
        "Whether groups rebalance without waiting for Kafka's intervals, and share fetches that only members "
        "can satisfy which wait themselves are answered soon; `false` waits as Kafka does."
    ),
    "ottla.idle.poll.us": (
        "For how many microseconds the broker looks for the next request before it sleeps, once a client has asked "
        "again within that time; 0 for never. It uses the processor meanwhile, and saves the wake-up."
    ),
    "ottla.high.watermark": (
        "How high watermarks follow the log: a comma-separated list of policies: `immediate`, "
        "`held`, `lag=20ms±5ms`, `bytes=4096`, or `topic:policy`."
    ),
    "ottla.lab.clock": (
        "How time passes for the broker when it starts: `system` as the machine's, `frozen` not at all, `rate=N` N "
        "times as fast; the last two also from another time on: `frozen@2026-01-01T00:00:00Z`. With a seed the default "
        "is that one."
    ),
    "ottla.lab.group.events": (
        "How many events the timeline of a group keeps while the lab is on; 0 for no timelines. All timelines together "
        "keep about a million."
    ),
    "ottla.lab.open": (
        "Whether the lab answers clients that are not on a loopback address; they need `ottla.lab.token`."
    ),
    "ottla.lab.port": "The HTTP port of the lab; 0 for any free port, -1 for none. `--lab` sets it.",
    "ottla.lab.scenario": (
        "A YAML file with steps that the lab takes at start, such as topics to create, policies and faults. "
        "`--scenario` sets it."
    ),
    "ottla.lab.seed": (
        "A number from which all ids, salts and chances of the broker follow, and the ports that are 0, so that two "
        "runs with the same input write the same bytes; `--seed` sets it. Nothing is secret in such a run."
    ),
    "ottla.lab.tls": (
        "Whether the lab's port speaks HTTPS, with the `ssl.*` keys of listeners, or with those of its own, such as "
        "`listener.name.lab.ssl.keystore.location`."
    ),
    "ottla.lab.token": (
        "What requests to the lab must send as `Authorization: Bearer TOKEN`, except those for `/live`, `/ready` and "
        "`/oauth`."
    ),
    "ottla.oauth.failures.max": (
        "How many wrong secrets for one client `/oauth/token` takes from an address within a minute; four times as "
        "many for all clients of the address."
    ),
    "ottla.emulate": (
        "The release of Apache Kafka whose APIs, versions and behaviour clients find: see "
        "[Earlier releases](../how-to/earlier-releases.md)."
    ),
    "ottla.emulate.oldest.fetch": (
        "Whether a broker that emulates 0.8.2 also answers the fetch and multi-fetch requests of before 0.8, which "
        "have no version."
    ),
    "ottla.flush.ms.holds.acks": (
        "Whether acks=all, and consumers, also wait for the flush that `flush.ms` causes, and not only for that of "
        "`flush.messages`. Kafka does not wait for it. The coordinators' topics do not."
    ),
    "ottla.record.validation": (
        "`full` checks the records of every batch; `header` checks them only if the batch header gives a reason."
    ),
    "ottla.recovery": (
        "At start, if committed data is missing or damaged: `strict` refuses to start, `salvage` "
        "continues with the rest."
    ),
    "ottla.audit.log": "A file to which denied rights and failed log-ins are logged as JSON lines.",
    "ottla.audit.log.backups": "How many full files of the audit log are kept besides the current one.",
    "ottla.audit.log.grants": "Whether the audit log also has the rights that were granted, and the log-ins.",
    "ottla.audit.log.max.bytes": "The size at which a new file of the audit log is started; -1 for no limit.",
    "ottla.request.log": "A file to which requests and replies are logged as JSON lines.",
    "ottla.request.log.apis": "The names of the APIs that are logged; all by default.",
    "ottla.request.log.backups": (
        "How many full files of the request log are kept besides the current one (`FILE.1` is the latest)."
    ),
    "ottla.request.log.clients": "The client ids that are logged, with `*` for any text; all by default.",
    "ottla.request.log.max.bytes": "The size at which a new file of the request log is started; -1 for no limit.",
    "ottla.trace": "A file to which a trace of all requests and replies is written from the start, as JSON lines.",
    "ottla.trace.apis": "The names of the APIs that the trace has; all by default.",
    "ottla.trace.backups": (
        "How many full files of each trace are kept besides the current one (`FILE.1` is the latest)."
    ),
    "ottla.trace.client.id": "The client ids that the trace has, with `*` for any text; all by default.",
    "ottla.trace.directory": (
        "Where traces that are started while the broker runs write their files; without it they have none."
    ),
    "ottla.trace.group": "The groups whose requests the trace has, with `*` for any text; all requests by default.",
    "ottla.trace.max.bytes": "The size at which a new file of a trace is started; -1 for no limit.",
    "ottla.trace.principal": "The principals that the trace has, with `*` for any text; all by default.",
    "ottla.trace.raw": (
        "`frames`: the trace has the bytes of each frame, in base64, but not of those with secrets; `secrets`: of all."
    ),
    "ottla.trace.topic": "The topics whose requests the trace has, with `*` for any text; all requests by default.",
    "ottla.controller.node": "The node that is the active controller, which fails with it; with -1 the controller "
    "is at no node, and never fails.",
    "ottla.isr.size": "How many replicas are said to be in sync, whatever is true: a comma-separated list of sizes, "
    "`1` or `topic:1`. With fewer than `min.insync.replicas`, one broker alone answers NOT_ENOUGH_REPLICAS.",
    "ottla.nodes": "How many nodes the process has: each has an id, listeners and leaders of its own; the ids and the "
    "ports follow those of the first. `--nodes` sets it.",
    "ottla.nodes.racks": "The racks of the nodes, in the order of their ids; if they are fewer, they are repeated. "
    "Without them every node has `broker.rack`.",
    "ottla.seed.file": "A YAML file with topics, records and users that the broker creates at start.",
    "ottla.users": (
        "Users of SASL listeners: `alice:alice-secret; bob:bob-secret:SCRAM-SHA-512`; all mechanisms that take "
        "passwords unless some are named."
    ),
    "ottla.transactional.ids.max": "How many transactional ids the broker remembers (until they expire).",
}
"""The meaning of each of ottla's own keys."""


def broker_key_docs(name: str) -> str | None:
    """Returns what is written about a key of brokers: the default of a topic's key means what that means."""
    topic_key = next((topic for topic, (first, *_) in topic_synonyms().items() if first == name), "")
    return OWN_DOCS.get(name) or TOPIC_DOCS.get(topic_key)
