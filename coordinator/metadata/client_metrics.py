"""Configurations of client metrics (KIP-714): what a subscription may say. What it does is in `telemetry`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from ...protocol.config_def import ConfigKey, lists_are_sets
from ...protocol.errors import ApiError, Errors
from ..hashing import java_order

if TYPE_CHECKING:
    from ..group.regex import Pattern

_VALUES = "any values that are not empty"
INTERVAL_MS_MIN, INTERVAL_MS_MAX = 100, 3_600_000
PATTERNS_MAX = 16  # of a subscription; each may take some milliseconds to compile, and six attributes can have one
STEPS = 128  # that a subscription counts for, where changes are followed in steps: as many as are one
MATCHED = frozenset(
    (
        *("client_id", "client_instance_id", "client_software_name", "client_software_version"),
        *("client_source_address", "client_source_port"),
    )
)


@cache
def client_metrics_keys(release: str | None = None) -> dict[str, ConfigKey]:
    """Returns the keys of a subscription, by name. `release`: the earlier one that is emulated."""
    repeats = not lists_are_sets(release)
    found = (
        ConfigKey("interval.ms", "INT", "300000", None, True, False),
        ConfigKey("match", "LIST", "", _VALUES, True, False, repeats=repeats),
        ConfigKey("metrics", "LIST", "", _VALUES, True, False, repeats=repeats),
    )
    return {key.name: key for key in found}


STORED = client_metrics_keys("4.1")  # they parse what any release has accepted


def check_client_metrics(name: str, values: dict[str, str], release: str | None = None) -> None:
    """Validates a subscription (ClientMetricsConfigs). `release`: the earlier one that is emulated. Raises
    ConfigInvalid, or ApiError with Kafka's message.
    """
    keys = client_metrics_keys(release)
    if not name:
        raise ApiError(Errors.INVALID_REQUEST, "Subscription name can't be empty")
    unknown = next((key for key in java_order(values) if key not in keys), None)
    if unknown is not None:
        raise ApiError(Errors.INVALID_REQUEST, f"Unknown client metrics configuration: {unknown}")
    parsed = {key: keys[key].parse(value) for key, value in values.items()}
    interval = parsed.get("interval.ms", INTERVAL_MS_MIN)
    if not INTERVAL_MS_MIN <= interval <= INTERVAL_MS_MAX:
        text = f"Invalid value {interval} for interval.ms, interval must be between 100 and 3600000 (1 hour)"
        raise ApiError(Errors.INVALID_REQUEST, text)
    patterns_of(values)


def patterns_of(values: Mapping[str, str]) -> dict[str, Pattern]:
    """Returns the patterns of a subscription by the attribute of clients that must match them in full. They are in the
    syntax of RE2, which has neither look-ahead nor back references, so that no client id can make a match slow.

    Raises ApiError(INVALID_CONFIG).
    """
    given_patterns = STORED["match"].parse(values.get("match", ""))
    if not given_patterns:
        return {}
    if len(given_patterns) > PATTERNS_MAX:
        raise ApiError(Errors.INVALID_CONFIG, f"Illegal client matching pattern: {given_patterns[PATTERNS_MAX]}")
    from ..group.regex import tried  # its library takes long to import

    found: dict[str, Pattern] = {}
    for given in given_patterns:
        attribute, *expression = given.rstrip("=").split("=")  # Java leaves empty texts at the end out
        pattern = tried(expression[0].strip()) if len(expression) == 1 and attribute.strip() in MATCHED else None
        if pattern is None or isinstance(pattern, Exception):
            raise ApiError(Errors.INVALID_CONFIG, f"Illegal client matching pattern: {given}")
        found[attribute.strip()] = pattern
    return found
