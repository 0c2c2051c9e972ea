"""Keys of brokers that have dynamic values only (Kafka's QuotaConfig)."""

from __future__ import annotations

from ...protocol.config_def import ConfigKey

RATES = {
    name: ConfigKey(name, "LONG", str((1 << 63) - 1), "[0,...]", True, False)
    for name in (
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    )
}
