"""Odd values of configuration keys: what is refused, in which words, and what they become."""

from __future__ import annotations

from itertools import product

import pytest
from ottla.coordinator.metadata.configs import APPEND, DELETE, SET, SUBTRACT

from ..support.differential import Pair
from ..support.stories.core import alter, describe
from ..support.stories.topics import topic

pytestmark = pytest.mark.slow
TOPIC, BROKER, GROUP = 2, 4, 32


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


@pytest.mark.parametrize(
    "seconds", ["9223372036854775807", "9223372036854775808", "9" * 400], ids=["most", "more", "far-more"]
)
def test_a_share_group_begins_within_a_long_of_seconds(pair: Pair, seconds: str) -> None:
    shown(pair, GROUP, "long", "share.auto.offset.reset", f"by_duration:PT{seconds}S")
    shown(pair, GROUP, "long", "share.auto.offset.reset", f"by_duration:PT{seconds}H")


def test_the_durations_with_which_a_share_group_may_begin(pair: Pair) -> None:
    good = (
        "P1DT2H3M4.5S",
        "+P1D",
        "P+1D",
        "-PT-1S",
        "PT1,5S",
        "PT1.S",
        "PT0.000000001S",
        "PT-0S",
        "P2DT-47H",
        "-P-1DT1H",
    )
    bad = (
        "",
        "P",
        "PT",
        "P1DT",
        "1D",
        "P1H",
        "PT1D",
        "PT1M1H",
        "PT.5S",
        "PT0.0000000001S",
        "PT-0.1S",
        "P1DT-25H",
        "-P1D",
    )
    odd = ("P\u0661D", "PT1S ", " PT1S", "PT1S\n", "P 1D", "P1WT1S", "P1D1H", "P--1D", "PT1.5M", "-P1D", "-P-1DT1H")
    for value in (*good, *bad, *odd):
        shown(pair, GROUP, "lasting", "share.auto.offset.reset", f"by_duration:{value}")
    assert pair.errors("IncrementalAlterConfigs") == {"NONE", "INVALID_CONFIG"}


REPLICAS = "leader.replication.throttled.replicas"


@pytest.mark.parametrize("how", [APPEND, SUBTRACT], ids=["append", "subtract"])
def test_spaces_in_lists_that_change(pair: Pair, how: int) -> None:
    """What is appended or taken away is compared with its spaces."""
    topic(pair, "spaced")
    for value in (" 2:2", "2:2 ", "1:1 , 2:2", " 1:1", "1:1", "3:3,\t4:4", " "):
        alter(pair, TOPIC, "spaced", (REPLICAS, SET, "1:1, 2:2 ,3:3"), keeps=True)
        for _ in range(2):
            alter(pair, TOPIC, "spaced", (REPLICAS, how, value), keeps=True)
            pair.agree("DescribeConfigs", 4, describe("spaced", keys=[REPLICAS]))
    for kept in (None, "compact, delete", " delete"):
        if kept is not None:
            alter(pair, BROKER, "", ("log.cleanup.policy", SET, kept), keeps=True)
            pair.agree("DescribeConfigs", 4, describe("1", kind=BROKER, keys=["log.cleanup.policy"]))
        for value in (" delete", "delete ", "delete", "compact, delete", " "):
            alter(pair, BROKER, "", ("log.cleanup.policy", how, value))
            alter(pair, BROKER, "1", ("log.cleanup.policy", how, value))
    alter(pair, BROKER, "", ("log.cleanup.policy", DELETE, None), keeps=True)


def test_a_list_grows_until_a_string_of_old_requests_is_too_short(pair: Pair) -> None:
    topic(pair, "long-list")
    alter(pair, TOPIC, "long-list", (REPLICAS, SET, ",".join(["1:1"] * 8191)), keeps=True)
    for value in ("2:2", "2:22", "22:22", "2:2,3:3"):
        alter(pair, TOPIC, "long-list", (REPLICAS, APPEND, value))
    alter(pair, TOPIC, "long-list", (REPLICAS, APPEND, "2:2"), keeps=True)
    pair.agree("DescribeConfigs", 1, describe("long-list", keys=[REPLICAS]))
    alter(pair, TOPIC, "long-list", (REPLICAS, APPEND, "2:2"))
    alter(pair, TOPIC, "long-list", (REPLICAS, APPEND, "3:3"))
    alter(pair, TOPIC, "long-list", (REPLICAS, SUBTRACT, "1:1"))
    assert pair.errors("IncrementalAlterConfigs") == {"NONE", "INVALID_CONFIG"}
