"""Odd values of configuration keys: what is refused, in which words, and what they become."""

from __future__ import annotations

from itertools import product

import pytest
from ottla.coordinator.metadata.configs import APPEND, DELETE, SET, SUBTRACT
from ottla.protocol import messages as m

from ..support.differential import Pair
from ..support.stories.core import describe
from ..support.stories.topics import topic

pytestmark = pytest.mark.slow
TOPIC, BROKER, GROUP = 2, 4, 32


def alter(pair: Pair, kind: int, name: str, *changes: tuple[str, int, str | None], keeps: bool = False) -> None:
    """Alters the configuration of a resource; without `keeps` it is only checked whether that would be done."""
    r = m.IncrementalAlterConfigsRequest
    configs = [r.AlterableConfig(name=key, config_operation=how, value=value) for key, how, value in changes]
    resource = r.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    pair.ask("IncrementalAlterConfigs", 1, r(resources=[resource], validate_only=not keeps))


def shown(pair: Pair, kind: int, name: str, key: str, value: str) -> None:
    """Sets a value, looks at what it has become, and deletes it."""
    alter(pair, kind, name, (key, SET, value), keeps=True)
    pair.agree("DescribeConfigs", 4, describe(name, kind=kind, keys=[key]))
    alter(pair, kind, name, (key, DELETE, None), keeps=True)


LISTS = (
    "controller.listener.names",
    "config.providers",
    "cordoned.log.dirs",
    "listeners",
    "log.cleanup.policy",
    "log.dirs",
    "metric.reporters",
    "process.roles",
    "sasl.enabled.mechanisms",
    "sasl.kerberos.principal.to.local.rules",
    "ssl.cipher.suites",
    "ssl.enabled.protocols",
)
NO_DEFAULT = {"INVALID_REQUEST", "UNKNOWN_SERVER_ERROR"}
ERRORS = {
    "config.providers": {"NONE"},
    "controller.listener.names": NO_DEFAULT,
    "listeners": {"INVALID_REQUEST"},
    "log.dirs": {"INVALID_REQUEST"},
    "process.roles": NO_DEFAULT,
}


@pytest.mark.parametrize("key", LISTS)
def test_a_list_of_a_broker(pair: Pair, key: str) -> None:
    """What a list would become is checked, too: to the default, if nothing else was set, values are appended."""
    for broker, how, value in product(("1", ""), (SET, APPEND, SUBTRACT), ("", " ", ",", "abc", "a,,a", "a,b,a")):
        alter(pair, BROKER, broker, (key, how, value))
    assert pair.errors("IncrementalAlterConfigs") == ERRORS.get(key, {"NONE", "INVALID_REQUEST"})


def test_a_list_that_has_been_set(pair: Pair) -> None:
    key = "log.cleanup.policy"
    alter(pair, BROKER, "1", (key, SET, "compact"), keeps=True)
    for how, value in product((APPEND, SUBTRACT), ("delete", "compact", "abc", "", ",")):
        alter(pair, BROKER, "1", (key, how, value))
        alter(pair, BROKER, "", (key, how, value))
    alter(pair, BROKER, "1", (key, DELETE, None), keeps=True)
    assert pair.errors("IncrementalAlterConfigs") == {"NONE", "INVALID_REQUEST"}


def test_a_list_of_a_topic(pair: Pair) -> None:
    topic(pair, "lists")
    for how, value in product((SET, APPEND, SUBTRACT), ("", ",", "delete,", "compact,,", ",compact", "a,,a")):
        alter(pair, TOPIC, "lists", ("cleanup.policy", how, value))
    assert pair.errors("IncrementalAlterConfigs") == {"NONE", "INVALID_CONFIG"}


@pytest.mark.parametrize("key", ["leader.replication.throttled.replicas", "follower.replication.throttled.replicas"])
def test_throttled_replicas(pair: Pair, key: str) -> None:
    topic(pair, f"throttled-{key}")
    for value in (
        ",",
        "1:1,1:1",
        "1:1,",
        ",1:1",
        "1:1,,2:2",
        " 1:1 , 2:2 ",
        "*",
        "*,",
        "*,1:1",
        "1:1,*",
        "1:",
        "-1:1",
        "a:b",
    ):
        shown(pair, TOPIC, f"throttled-{key}", key, value)
    assert pair.errors("IncrementalAlterConfigs") == {"NONE", "INVALID_CONFIG"}


def test_numbers_with_a_point(pair: Pair) -> None:
    topic(pair, "points")
    for value in ("2147483647", "9223372036854775808", "1e7", "9999999.5", "-1e-4", "Infinity", "-Infinity", "NaN"):
        alter(pair, TOPIC, "points", ("min.cleanable.dirty.ratio", SET, value))
        alter(pair, BROKER, "1", ("log.cleaner.min.cleanable.ratio", SET, value))
    assert pair.errors("IncrementalAlterConfigs") == {"NONE", "INVALID_CONFIG", "INVALID_REQUEST"}


OVERRIDES = (
    *(
        "x",
        " x ",
        "x,y:1",
        "x:1,y",
        "x:y",
        "x:y,z",
        "x:",
        ":1",
        "x:-1",
        "x:+1",
        "x:0",
        "x: 1 ",
        " x : 1",
        "x:99999999999",
    ),
    *("x:-99999999999", "a b:1", "[::1]:3", "::1:3", "x:1,x:2", ",", ",,", "x:1,", ",x:1", "é:1", "*:1", "x:1;y:2"),
)


def test_connections_of_addresses(pair: Pair) -> None:
    for value in OVERRIDES:
        alter(pair, BROKER, "1", ("max.connections.per.ip.overrides", SET, value))
    assert pair.errors("IncrementalAlterConfigs") == {"NONE", "INVALID_REQUEST"}


def test_threads_of_remote_storage(pair: Pair) -> None:
    for key, value in product(
        (
            "remote.log.manager.copier.thread.pool.size",
            "remote.log.manager.expiration.thread.pool.size",
            "remote.log.manager.follower.thread.pool.size",
            "remote.log.reader.threads",
        ),
        ("-1", "0", "1", "2", "4", "5", "20", "21", "2147483647"),
    ):
        alter(pair, BROKER, "1", (key, SET, value))
    assert pair.errors("IncrementalAlterConfigs") == {"NONE", "INVALID_REQUEST"}


def test_what_is_kept_beside_remote_storage(pair: Pair) -> None:
    """At most as much as is kept in all."""
    ms, size = "log.retention.ms", "log.retention.bytes"
    local_ms, local_size, lag_ms, lag_size = (
        "log.local.retention.ms",
        "log.local.retention.bytes",
        "log.remote.copy.lag.ms",
        "log.remote.copy.lag.bytes",
    )
    values = ("-3", "-2", "-1", "0", "1000", "1001", "9223372036854775807")
    for kept in (None, "1000", "-1"):
        for all_of, local in ((ms, local_ms), (size, local_size)):
            for value in values:
                alter(pair, BROKER, "", *(() if kept is None else ((all_of, SET, kept),)), (local, SET, value))
    for beside, value in product((None, "500", "-1", "-2"), values):
        for all_of, key, lag in ((ms, local_ms, lag_ms), (size, local_size, lag_size)):
            own = () if beside is None else ((all_of, SET, "1000"), (key, SET, beside))
            alter(pair, BROKER, "", *own, (lag, SET, value))
    assert pair.errors("IncrementalAlterConfigs") == {"NONE", "INVALID_REQUEST"}


def test_where_a_share_group_begins(pair: Pair) -> None:
    for value in ("LATEST", "Earliest", " latest ", "BY_DURATION:PT1H", "by_duration:pt1h", "by_duration:Pt1h", "none"):
        shown(pair, GROUP, "odd", "share.auto.offset.reset", value)
    assert pair.errors("IncrementalAlterConfigs") == {"NONE", "INVALID_CONFIG"}
