"""Lists Kafka's broker keys that have no effect in ottla, with the reason, and makes the warnings about given keys.

A test derives from the code which keys are read: each key is either read or matches a pattern below.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...protocol.config_def import ConfigKey
from .node_values import PREFIX as NODE_PREFIX

_REASONS: dict[str, str] = {
    "OpenSSL takes the place of Java's providers": """
        ssl.keymanager.algorithm ssl.trustmanager.algorithm ssl.provider ssl.secure.random.implementation
        security.providers""",
    "ottla accepts Kerberos tickets and gets none itself": """
        sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.ticket.*""",
    "ottla is no client of an authorization server": """
        sasl.oauthbearer.assertion.* sasl.oauthbearer.client.credentials.* sasl.oauthbearer.jwt.retriever.class
        sasl.oauthbearer.scope sasl.oauthbearer.token.endpoint.url""",
    "ottla is no client of other brokers": """
        sasl.client.* sasl.login.* sasl.mechanism.controller.protocol sasl.mechanism.inter.broker.protocol
        socket.connection.setup.timeout.* ssl.endpoint.identification.algorithm""",
    "ottla has no tiered storage": "remote.* log.remote.* log.local.* follower.fetch.last.tiered.offset.enable",
    "all replicas of a partition share one log": """
        replica.fetch.backoff.ms replica.fetch.min.bytes replica.fetch.response.max.bytes replica.fetch.wait.max.ms
        replica.high.* replica.socket.* num.replica.fetchers
        controlled.shutdown.enable""",
    "moves between log directories are paced evenly, without windows": "alter.log.dirs.replication.quota.*",
    "the broker is its own controller": """
        controller.performance.* controller.socket.* controller.quorum.append.*
        controller.quorum.election.* controller.quorum.fetch.max.bytes controller.quorum.fetch.snapshot.max.bytes
        controller.quorum.request.*
        controller.quorum.retry.* controller.quorum.bootstrap.servers controller.quorum.voters
        broker.heartbeat.interval.ms initial.broker.registration.timeout.ms server.max.startup.time.ms metadata.max.*
        metadata.log.dir metadata.log.segment.* internal.metadata.*
        unstable.feature.versions.enable""",
    "ottla has no such thread pool, queue or buffer": """
        num.io.threads num.network.threads background.threads num.recovery.threads.per.data.dir
        group.coordinator.threads group.coordinator.background.threads share.coordinator.threads
        queued.max.requests queued.max.request.bytes *.purgatory.purge.interval.requests *.append.linger.ms
        *.load.buffer.size *.cached.buffer.max.bytes group.*.assignor.offload.enable
        log.cleaner.io.buffer.size""",
    "ottla exports its metrics at the lab's port": """
        metric.reporters kafka.metrics.* metrics.num.samples metrics.recording.level metrics.sample.window.ms""",
    "tasks of streams groups do not warm up yet, as in Kafka 4.4": "group.streams.num.warmup.replicas",
    "ottla does this when it is due, not periodically": """
        log.dir.failure.timeout.ms log.flush.start.offset.checkpoint.interval.ms
        share.coordinator.state.topic.prune.interval.ms""",
    "all listeners begin to serve at the same time": "early.start.listeners",
}
WITHOUT_EFFECT: dict[str, str] = {
    pattern: reason for reason, patterns in _REASONS.items() for pattern in patterns.split()
}
"""Patterns of keys, each with one `*` at most, and the reason why these keys have no effect. The first pattern that
matches counts.
"""

_EARLIER_REASONS: dict[str, str] = {
    "ottla has a client of ZooKeeper of its own": """
        zookeeper.clientCnxnSocket zookeeper.max.in.flight.requests zookeeper.metadata.migration.*
        zookeeper.sync.time.ms""",
    "ottla does not check whether ZooKeeper's certificate was revoked": """
        zookeeper.ssl.crl.enable zookeeper.ssl.ocsp.enable""",
    "ottla has the quotas of its metadata only": "quota.consumer.default quota.producer.default",
    "all replicas of a partition share one log": "replica.lag.max.messages controlled.shutdown.*",
    "the broker is its own controller": """
        alter.config.policy.kraft.compatibility.enable broker.id.generation.enable control.plane.listener.name
        controller.message.queue.size eligible.leader.replicas.enable internal.metadata.max.fetch.size.in.bytes
        leader.imbalance.per.broker.percentage metadata.log.segment.min.bytes reserved.broker.max.id
        unstable.metadata.versions.enable""",
    "ottla has one coordinator of groups, which takes what the release takes": """
        group.coordinator.new.enable group.share.enable group.share.max.groups offsets.commit.required.acks
        share.fetch.max.fetch.records""",
    "ottla exports its metrics at the lab's port": "auto.include.jmx.reporter",
}
EARLIER_WITHOUT_EFFECT: dict[str, str] = {
    pattern: reason for reason, patterns in _EARLIER_REASONS.items() for pattern in patterns.split()
}
"""The same for keys that only earlier releases had."""

_LISTENER_KEY = re.compile(r"listener\.name\.[^.]+\.(?P<key>.+)")
# the rest of the key belongs to a plug-in, or to one node, and is checked by `node_values.py`
PREFIXES = ("config.providers.", "rlmm.config.", "rsm.config.", NODE_PREFIX)


REQUIRED = ("controller.quorum.bootstrap.servers", "controller.quorum.voters")
"""Kafka does not start without one of these, so that every configuration has one: it is no reason for a warning."""


def without_effect(name: str) -> str | None:
    """Returns the reason why a broker key has no effect; None if the key has an effect."""
    for known in (WITHOUT_EFFECT, EARLIER_WITHOUT_EFFECT):
        for pattern, reason in known.items():
            if _matches(name, pattern):
                return reason
    return None


def _matches(name: str, pattern: str) -> bool:
    """Whether a key matches a pattern. Every start of a broker asks that for all patterns: `fnmatch` would compile
    each.
    """
    start, star, end = pattern.partition("*")
    if not star:
        return name == pattern
    return len(name) >= len(start) + len(end) and name.startswith(start) and name.endswith(end)


def warnings(given: Mapping[str, str], where: Mapping[str, str], known: Mapping[str, ConfigKey]) -> list[str]:
    """Returns a warning for each given key without effect. Warnings do not contain the value, which may be a secret."""
    found = []
    for name, text in given.items():
        if name in known:
            key, reason = known[name], without_effect(name)
            if reason is not None and name not in REQUIRED and key.parse(text) != key.parse(key.default):
                found.append(f"{where[name]}: configuration key {name!r} has no effect: {reason}")
        elif not _is_known(name, known):
            near = nearest(name, known)
            hint = f" (did you mean {near!r}?)" if near else ""
            found.append(f"{where[name]}: unknown configuration key {name!r}{hint}; ignored")
    return found


def _is_known(name: str, known: Mapping[str, ConfigKey]) -> bool:
    """Whether Kafka accepts a key because it belongs to a plug-in, or to one listener (and SASL mechanism)."""
    listener = _LISTENER_KEY.fullmatch(name)
    if listener is None:
        return name.startswith(PREFIXES)
    key = listener["key"]
    return key in known or key.partition(".")[2] in known


def nearest(name: str, known: Mapping[str, ConfigKey]) -> str | None:
    """Returns the known key that is most similar to `name`; None if no key is similar."""
    from difflib import get_close_matches

    found = get_close_matches(name.lower().replace("_", "."), known, n=1, cutoff=0.8)
    return found[0] if found else None
