"""Relations between broker keys that Kafka checks at start and for dynamic changes.

The order is Kafka's (KafkaConfig.validateValues, GroupCoordinatorConfig, ShareGroupConfig), so that of several
violations the same one is reported. Kafka's checks of quorum voters and controller listeners are left out: an ottla
broker is its own controller.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ...protocol import compression
from ...protocol.config_def import message_format, release_number
from ...protocol.java import java_split

MIB = 1 << 20
FORMATS_SINCE = ("0.8.0", "0.10.0-IV0", "0.11.0-IV0")
OVERRIDES = "max.connections.per.ip.overrides"
OF_WHOLE = -2  # a local retention that is that of the whole log
_HOST = re.compile(r"[0-9A-Za-z\-%._:]*")
_COUNT = re.compile(r"[+-]?\d+")

Values = Mapping[str, Any]


class Relation(NamedTuple):
    """Keys whose values must fit together, and Kafka's message if they do not."""

    keys: tuple[str, ...]
    holds: Callable[[Values], bool]
    words: str | Callable[[Values], str]

    @property
    def is_required(self) -> bool:
        """Whether Scala's `require` checks it, which says so before the message."""
        return not self.keys[0].startswith(("group.", "share.")) and self.keys != (OVERRIDES,)


def _at_least(name: str, other: str) -> Relation:
    return Relation((name, other), lambda v: v[name] >= v[other], f"{name} must be greater than or equal to {other}")


def _at_most(name: str, other: str) -> Relation:
    return Relation((name, other), lambda v: v[name] <= v[other], f"{name} must be less than or equal to {other}")


def _less(name: str, other: str) -> Relation:
    return Relation((name, other), lambda v: v[name] < v[other], f"{name} must be less than {other}")


def in_ms(values: Values, in_milliseconds: str, *others: tuple[str, int]) -> int:
    """Returns the value of the first key that is set, in milliseconds; a negative number of hours or minutes becomes
    -1.
    """
    if values[in_milliseconds] is not None:
        return int(values[in_milliseconds])
    for name, factor in others:
        if values[name] is not None:
            return int(values[name]) * factor if values[name] >= 0 else -1
    return -1


def _retention_ms(values: Values) -> int:
    return in_ms(values, "log.retention.ms", ("log.retention.minutes", 60_000), ("log.retention.hours", 3_600_000))


def _formats(values: Values) -> bool:
    """Whether brokers that speak `inter.broker.protocol.version` know the format of messages. Only earlier releases
    have these keys.
    """
    written, spoken = values.get("log.message.format.version"), values.get("inter.broker.protocol.version")
    if written is None or spoken is None:
        return True
    return message_format(written) <= message_format(spoken) or (release_number(spoken) or ()) >= (3, 0)


def _dedupe(values: Values) -> bool:
    threads = values["log.cleaner.threads"]
    return bool(threads > 0 and values["log.cleaner.dedupe.buffer.size"] // threads > MIB)


def overrides(values: Values) -> dict[str, int]:
    """Parses `max.connections.per.ip.overrides`: the connection limit by host. Raises ValueError if it is malformed,
    with what Java says.
    """
    text = values[OVERRIDES].strip()
    entries = [one.strip() for one in java_split(text)] if text else []
    for entry in entries:
        if ":" not in entry:
            length = len(entry)
            raise ValueError(f"Error parsing configuration property '{OVERRIDES}': begin 0, end -1, length {length}")
    found = {}
    for entry in entries:
        host, _, count = entry.rpartition(":")
        if not _COUNT.fullmatch(count.strip()) or not -(1 << 31) <= int(count) < 1 << 31:
            raise ValueError(f'For input string: "{count.strip()}"')
        found[host.strip()] = int(count)
    wrong = [host for host in found if not _HOST.fullmatch(host)]
    if wrong:
        raise ValueError(f"{OVERRIDES} contains invalid addresses : {','.join(wrong)}")
    return found


def _wrong_overrides(values: Values) -> str:
    try:
        overrides(values)
    except ValueError as error:
        return str(error)
    return ""


def _cordoned(values: Values) -> bool:
    cordoned = values["cordoned.log.dirs"]
    return cordoned == ["*"] or set(cordoned) <= set(values["log.dirs"] or values["log.dir"])


def _wrongly_cordoned(values: Values) -> str:
    if "*" in values["cordoned.log.dirs"]:
        return "When cordoned.log.dirs is set to *, it must not contain other values"
    missing = [one for one in values["cordoned.log.dirs"] if one not in (values["log.dirs"] or values["log.dir"])]
    return (
        "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing entries : "
        f"{', '.join(missing)}"
    )


def _codec(name: str) -> Relation:
    return Relation(
        (name,), lambda v: 0 <= v[name] < len(compression.NAMES), lambda v: f"Unknown compression type id: {v[name]}"
    )


def _group(kind: str) -> list[Relation]:
    """Relations of one kind of groups: interval, session and assignment, each within its bounds (KIP-848, KIP-932,
    KIP-1071, KIP-1240).
    """
    found = []
    for what in ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"):
        low, value, high = (f"group.{kind}.{part}{what}" for part in ("min.", "", "max."))
        found += [_at_least(high, low), _at_least(value, low), _at_most(value, high)]
    return [*found, _less(f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms")]


RELATIONS: tuple[Relation, ...] = (
    Relation(
        ("log.message.format.version", "inter.broker.protocol.version"),
        _formats,
        lambda v: (
            f"log.message.format.version {v['log.message.format.version']} can only be used when "
            "inter.broker.protocol.version is set to version "
            f"{(FORMATS_SINCE[message_format(v['log.message.format.version'])])} or higher"
        ),
    ),
    Relation(
        ("log.roll.ms", "log.roll.hours"),
        lambda v: in_ms(v, "log.roll.ms", ("log.roll.hours", 3_600_000)) >= 1,
        "log.roll.ms must be greater than or equal to 1",
    ),
    Relation(
        ("log.roll.jitter.ms", "log.roll.jitter.hours"),
        lambda v: v["log.roll.jitter.ms"] is None or v["log.roll.jitter.ms"] >= 0,
        "log.roll.jitter.ms must be greater than or equal to 0",
    ),
    Relation(
        ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
        lambda v: _retention_ms(v) != 0,
        "log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
    ),
    Relation(
        ("log.cleaner.dedupe.buffer.size", "log.cleaner.threads"),
        _dedupe,
        "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
    ),
    Relation(
        ("replica.fetch.wait.max.ms", "replica.socket.timeout.ms"),
        lambda v: v["replica.fetch.wait.max.ms"] <= v["replica.socket.timeout.ms"],
        "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms to prevent unnecessary socket "
        "timeouts",
    ),
    Relation(
        ("replica.fetch.wait.max.ms", "replica.lag.time.max.ms"),
        lambda v: v["replica.fetch.wait.max.ms"] <= v["replica.lag.time.max.ms"],
        "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms to prevent "
        "frequent changes in ISR",
    ),
    Relation(
        ("queued.max.request.bytes", "socket.request.max.bytes"),
        lambda v: v["queued.max.request.bytes"] <= 0 or v["queued.max.request.bytes"] >= v["socket.request.max.bytes"],
        "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
    ),
    Relation(
        (OVERRIDES,),
        lambda v: not _wrong_overrides(v),
        _wrong_overrides,
    ),
    Relation(
        ("max.connections.per.ip", OVERRIDES),
        lambda v: v["max.connections.per.ip"] != 0 or bool(overrides(v)),
        "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set.",
    ),
    Relation(
        ("connections.max.idle.ms", "connection.failed.authentication.delay.ms"),
        lambda v: (
            v["connections.max.idle.ms"] < 0
            or v["connection.failed.authentication.delay.ms"] < v["connections.max.idle.ms"]
        ),
        "connection.failed.authentication.delay.ms should always be less than connections.max.idle.ms "
        "to prevent failed authentication responses from timing out",
    ),
    Relation(
        ("cordoned.log.dirs", "log.dirs", "log.dir"),
        _cordoned,
        _wrongly_cordoned,
    ),
    _codec("offsets.topic.compression.codec"),
    Relation(
        ("group.coordinator.rebalance.protocols",),
        lambda v: "classic" in v["group.coordinator.rebalance.protocols"],
        "Disabling the 'classic' protocol is not supported.",
    ),
    *_group("consumer"),
    *_group("share"),
    Relation(
        ("group.share.assignors",),
        lambda v: len(dict.fromkeys(v["group.share.assignors"])) == 1,
        lambda v: (
            f"group.share.assignors must contain exactly one assignor, but found {len(v['group.share.assignors'])}"
        ),
    ),
    *_group("streams"),
    _at_most("group.streams.num.standby.replicas", "group.streams.max.standby.replicas"),
    _at_least("group.streams.task.offset.interval.ms", "group.streams.min.task.offset.interval.ms"),
    _at_most("group.streams.num.warmup.replicas", "group.streams.max.warmup.replicas"),
    Relation(
        ("group.streams.rack.aware.assignment.tags",),
        lambda v: (
            len(set(v["group.streams.rack.aware.assignment.tags"]))
            == len(v["group.streams.rack.aware.assignment.tags"])
        ),
        "group.streams.rack.aware.assignment.tags must not contain duplicate tag keys.",
    ),
    _at_least("group.share.max.delivery.count.limit", "group.share.delivery.count.limit"),
    _at_least("group.share.delivery.count.limit", "group.share.min.delivery.count.limit"),
    _at_least("group.share.max.partition.max.record.locks", "group.share.partition.max.record.locks"),
    _at_least("group.share.partition.max.record.locks", "group.share.min.partition.max.record.locks"),
    _at_least("group.share.record.lock.duration.ms", "group.share.min.record.lock.duration.ms"),
    _at_least("group.share.max.record.lock.duration.ms", "group.share.record.lock.duration.ms"),
    _at_least("group.share.max.share.sessions", "group.share.max.size"),
    _codec("share.coordinator.state.topic.compression.codec"),
)


def refused(values: Values) -> tuple[Relation, str] | None:
    """Returns the first violated relation and Kafka's message; None if all hold."""
    for relation in RELATIONS:
        if not relation.holds(values):
            return relation, relation.words if isinstance(relation.words, str) else relation.words(values)
    return None


def refused_beside_remote_storage(values: Values) -> str | None:
    """Returns Kafka's message for more that is kept beside remote storage, or stays out of it for longer, than what is
    kept in all. Kafka checks this for changes only, also while there is no remote storage.
    """
    for unit, kept in (("ms", _retention_ms(values)), ("bytes", values["log.retention.bytes"])):
        whole, local, lag = f"log.retention.{unit}", f"log.local.retention.{unit}", f"log.remote.copy.lag.{unit}"
        value = values.get(local, OF_WHOLE)
        wrong = f"Invalid value {value} for configuration {local}: Value must not be"
        if kept >= 0 and value == -1:
            return f"{wrong} -1 as {whole} value is set as {kept}."
        if kept >= 0 and value > kept:
            return f"{wrong} more than {whole} property value: {kept}"
        effective = kept if value == OF_WHOLE else value
        if effective >= 0 and values.get(lag, 0) > effective:
            return (
                f"Invalid value {values[lag]} for configuration {lag}: Value must not exceed {local} (effective value: "
                f"{effective})"
            )
    return None
