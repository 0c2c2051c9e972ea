"""Asks ottla and a real Apache Kafka the same random requests in turn, and prints where their replies differ.
`make chance ARGS="SEED EPISODES [FAMILY ...]"`; a seed makes the same requests again, and `tell` prints all of
them with their replies. With `odd`, some of them have an odd value at one place or a few (`chance_odd.py`).

An episode has topics, groups and transactional ids of its own, and requests of one family of APIs, or those of a client
that mostly does its work as it should (`CLIENTS`), or those of several members of one group at once
(`chance_classic.py`). It ends where the brokers cannot be compared any more, because one has taken what the other has
refused. In families of `SECURED` users log in who have few rights.

Not every difference is one of ottla's: some of Kafka's requests are late while a topic or a coordinator is new, some
get no reply at all (an AddPartitionsToTxn without transactions, an AlterConfigs that names a resource twice, of which
those of all unknown types are one, a DescribeUserScramCredentials of all users by someone without the right), and lists
may have the order of random ids, as has the table in which a classic group finds another leader. Which member of a
share group gets which partition of a topic follows from random ids, too, and whether a ShareFetch that hardly waits
names the error of a state from how fast that is read.
"""

from __future__ import annotations

import random
import re
import sys
import time
from collections import Counter
from typing import Any, Final

from ottla.broker.apis import apis
from ottla.protocol import codec

from ottla.testing import Broker

from ..support.at_once import AT_ONCE, SHORTEST
from ..support.differential import (
    NEEDS,
    WITHOUT_RETENTION,
    await_coordinators,
    differences,
    errors_in,
    same_but_for_times,
)
from .chance_classic import Crowd
from .chance_clients import Client, Producers, Readers
from .chance_expiring import Brief, Locked, Patterns
from .chance_members import Members, Queue
from .chance_odd import SHARE, Odd
from .chance_offsets import Consumed
from .chance_regrown import Regrown
from .chance_requests import ADMINISTRATION, FAMILIES, RANDOM_IDS, SECURED, Known, Maker, learn
from .chance_shares import Leased
from .chance_sides import BEHIND_SECONDS, USERS, Side, authorizing_brokers
from .chance_stage import Heard, Sockets, Stage, play
from .chance_streams import Moved, Streams
from .chance_topics import Changed
from .kafka import Kafka

CLIENTS: Final[dict[str, type[Client]]] = {
    "producers": Producers,
    "readers": Readers,
    "queue": Queue,
    "members": Members,
    "moved": Moved,
    "tasks": Streams,
    "offsets": Consumed,
    "changed": Changed,
    "leased": Leased,
    "regrown": Regrown,
    "locked": Locked,
    "brief": Brief,
    "patterns": Patterns,
}
CROWD: Final = "crowd"
WORDS: Final = ("tell", "odd")
STEPS: Final = 30
CLIENT_STEPS: Final = 120
TWICE: Final = 0.15  # of requests of administrators may name something twice
SHOWN: Final = 2  # differences at one place
MARKERS_MS: Final = 60_000  # between the end of a transaction at one broker and at the other
BEHIND: Final = frozenset(("COORDINATOR_LOAD_IN_PROGRESS", "CONCURRENT_TRANSACTIONS"))  # which pass
FINAL_EPOCH: Final = -1
INITIALIZED_SECONDS: Final = 0.05  # until Kafka's share-partitions of a new subscription are
RELEASE_SECONDS: Final = 0.4  # until Kafka has released what a session held, and its coordinators know of topics
# what topics come of, or what coordinators hear of some time later
SLOW: Final = (
    "StreamsGroupHeartbeat", "ShareGroupHeartbeat", "CreateTopics", "DeleteTopics", "CreatePartitions",
    "IncrementalAlterConfigs",
)  # fmt: skip
READS: Final = ("ApiVersions", "Fetch", "Describe", "List", "Find", "Metadata", "OffsetFetch")
MAY_DIFFER: Final = frozenset(
    (
        "throttle_time_ms", "client_instance_id", "subscription_id", "usable_bytes", "total_bytes", "log_dir", "port",
        "host", "cluster_id", "leader", "documentation", "log_append_time_ms", "last_timestamp",
        "transaction_start_time_ms", "finalized_features_epoch",
    )
)  # fmt: skip
MESSAGES: Final = ("error_message", "batch_index_error_message")
_OF_ONE_BROKER: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|[A-Za-z0-9_-]{22}|\d{3,}|[\w.]+@[0-9a-f]+")
PLUGIN: Final = "org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin"
SETTINGS: Final[dict[str, object]] = {
    **{key: value for key, value in AT_ONCE.items() if not key.startswith("ottla.")},
    "auto.create.topics.enable": "false",
    **SHORTEST,
    "group.streams.topology.description.plugin.class": PLUGIN,
}

IN_ORDER: Final[dict[str, object]] = {"num.network.threads": 1, "num.io.threads": 1}  # Kafka serves what comes first


class Comparison:
    """What differed. `counts`: by API, path and errors; `is_told`: all requests and replies are printed; `is_odd`:
    something is odd in some of the requests.
    """

    def __init__(self, is_told: bool, is_odd: bool = False) -> None:
        self.is_told, self.is_odd = is_told, is_odd
        self.replies = 0
        self.counts: Counter[tuple[str, ...]] = Counter()
        self.ends: Counter[str] = Counter()  # of crowds, and of clients that were too slow

    def unlike(self, name: str, sides: tuple[Side, Side], mine: Any, other: Any) -> list[tuple[str, Any, Any]]:
        """Returns where two replies differ by more than ids, moments and the order of lists."""
        if isinstance(mine, str) or isinstance(other, str):
            return [] if mine == other else [("", mine, other)]
        if _form(sides[0].known, mine) == _form(sides[1].known, other):
            return []
        return [
            (path, a, b)
            for path, a, b in differences(name, _in_order(sides[0].known, mine), _in_order(sides[1].known, other))
            if not _may_differ(path.rpartition(".")[2].partition("[")[0], a, b)
        ]

    def tell(self, where: str, name: str, version: int, request: Any, found: list[tuple[str, Any, Any]]) -> None:
        for path, a, b in found:
            errors = (str(a), str(b)) if path.endswith("error_code") else ()
            place = (name, re.sub(r"\[\d+\]", "", path), *errors)
            self.counts[place] += 1
            if self.counts[place] <= SHOWN:
                one, other = (str(side)[:300] for side in _parted(a, b))
                print(f"{where}: {name} v{version} {path}: ottla {one!r}, Kafka {other!r}")
                print(f"    {str(request)[:900]}", flush=True)


def _parted(a: Any, b: Any) -> tuple[Any, Any]:
    """Returns of two lists what only one of them has, if there is any such."""
    if not isinstance(a, list) or not isinstance(b, list):
        return a, b
    names = {repr(one) for one in a}, {repr(one) for one in b}
    only = [one for one in a if repr(one) not in names[1]], [one for one in b if repr(one) not in names[0]]
    return only if any(only) else (a, b)


def _in_order(known: Known, reply: Any) -> Any:
    """Sorts the members of groups that are described, whose order is that of a hash table which tells its past, and
    tokens, whose order is that of random ids.
    """
    if hasattr(reply, "tokens"):
        reply.tokens.sort(key=lambda one: one.issue_timestamp)
    for group in getattr(reply, "groups", None) or ():
        if hasattr(group, "members"):
            group.members.sort(key=lambda one: one.member_id)
    return reply


def _may_differ(field: str, a: Any, b: Any) -> bool:
    if field in MAY_DIFFER or same_but_for_times(a, b):
        return True
    if field == "timestamp" and a > 0 and b > 0:  # those of markers
        return bool(abs(a - b) < MARKERS_MS)
    if field.endswith(("_timestamp", "_timestamp_ms")) and a > 0 and b > 0:  # those of tokens
        return bool(abs(a - b) < MARKERS_MS)
    if field in RANDOM_IDS:
        return type(a) is type(b) and bool(a) == bool(b)
    if field not in MESSAGES or not a or not b:
        return False
    mine, other = NEEDS.search(a), NEEDS.search(b)  # a request, which Kafka shows as a Java object
    return mine[1] == other[1] if mine and other else _OF_ONE_BROKER.sub("#", a) == _OF_ONE_BROKER.sub("#", b)


def _form(known: Known, value: Any, field: str = "") -> str:
    """Returns what two replies have in common that say the same."""
    if isinstance(value, list):
        return f"[{', '.join(sorted(_form(known, one, field) for one in value))}]"
    if hasattr(value, "unknown_tags"):
        named = (f"{n}={_form(known, getattr(value, n), n)}" for n in value.__slots__ if n not in MAY_DIFFER)
        return f"{type(value).__name__}({', '.join(named)})"
    ids = known.ids.get(field, []) if field in RANDOM_IDS else []
    if value in ids:
        return f"{field} {ids.index(value)}"
    return repr(bytes(value) if isinstance(value, memoryview) else value)


def episode(seed: int, family: str, servers: tuple[str, str], comparison: Comparison) -> None:
    chance, at_ms = random.Random(f"{seed}{family}"), int(time.time() * 1000)
    name = f"{seed}{family[:3]}"
    users = USERS if family in SECURED else ("",)
    mine, other = sides = Side(servers[0], Known(name), users), Side(servers[1], Known(name), users)
    known = (mine.known, other.known)
    learn(known, mine.make_topics(), other.make_topics())
    for step in range(STEPS):
        api = _APIS[chance.choice(FAMILIES[family].split())]
        version, made_of = chance.randint(max(api.low, api.listed_low), api.high), chance.getrandbits(60)
        user = users[0] if api.name.endswith("Acls") and chance.random() < 0.9 else chance.choice(users)
        for side in sides:
            side.user = user
        repeats = family in ADMINISTRATION and api.name != "Produce" and chance.random() < TWICE
        requests = [Maker(api, version, one, made_of, at_ms, family=family, repeats=repeats).make() for one in known]
        if comparison.is_odd and chance.random() < SHARE:
            requests = [Odd(made_of, api.name, version).changed(one) for one in requests]
        if not _can_be_said(api.name, version, requests[0]):
            continue
        _, differs = _compared(
            f"{seed} {family} {step} {user}".rstrip(), api.name, version, sides, requests, comparison
        )
        if api.name == "CreateDelegationToken":  # which Kafka's controller finds some time later
            time.sleep(RELEASE_SECONDS)
        elif api.name == "ShareGroupHeartbeat" or (users == USERS and not api.name.startswith(READS)):
            time.sleep(INITIALIZED_SECONDS)
        if differs and family not in ADMINISTRATION and not api.name.startswith(READS):
            break  # what follows would differ, too
    for side in sides:
        side.close()


def work(seed: int, kind: str, servers: tuple[str, str], comparison: Comparison) -> None:
    """An episode of clients that do their work."""
    at_ms, name = int(time.time() * 1000), f"{seed}{kind[:3]}"
    sides = Side(servers[0], Known(name)), Side(servers[1], Known(name))
    made = [side.make_topics() for side in sides]
    learn((sides[0].known, sides[1].known), *made)
    clients = [
        CLIENTS[kind](random.Random(f"{seed}{kind}"), name, {t.name: t.topic_id for t in reply.topics}, at_ms)
        for reply in made
    ]
    for side, client in zip(sides, clients, strict=True):
        client.ready(side.ask)
    oddity = random.Random(f"odd{seed}{kind}")
    began_s = time.monotonic()
    for step in range(CLIENT_STEPS):
        asked = [client.next() for client in clients]
        if clients[0].pause_s:
            time.sleep(clients[0].pause_s)
            began_s = time.monotonic()
            for client in clients:
                client.pause_s = 0.0
        elif 0 < clients[0].burst_s < time.monotonic() - began_s:
            comparison.ends["too late"] += 1
            break
        for side, client in zip(sides, clients, strict=True):
            if client.expiring:
                side.await_end(client.expiring, "Ongoing")
                client.expiring = ""
        api, version, _ = asked[1]
        requests = [one[2] for one in asked]
        is_odd, made_of = comparison.is_odd and oddity.random() < SHARE, oddity.getrandbits(60)
        if is_odd:
            requests = [Odd(made_of, api, version).changed(one) for one in requests]
        if not _can_be_said(api, version, requests[0]):
            continue
        replies, differs = _compared(f"{seed} {kind} {step}", api, version, sides, requests, comparison)
        if any(isinstance(reply, str) for reply in replies) or (differs and not api.startswith(READS)):
            break
        for side, client, one, reply in zip(sides, clients, requests, replies, strict=True):
            if not is_odd:  # what it does not hear of it takes for what has not happened
                client.heard(api, version, one, reply)
            if api in ("EndTxn", "InitProducerId") and one.transactional_id:
                side.await_end(one.transactional_id)
            side.await_topics(client.awaited)
        if clients[0].awaited or getattr(requests[1], "share_session_epoch", 0) == FINAL_EPOCH:
            time.sleep(RELEASE_SECONDS)
        if is_odd and api in SLOW:
            time.sleep(RELEASE_SECONDS)
        for client in clients:
            client.awaited.clear()
    for side in sides:
        side.close()


def mingle(seed: int, servers: tuple[str, str], comparison: Comparison) -> None:
    """An episode of several members of one group at once."""
    name = f"{seed}{CROWD[:3]}"
    crowd = Crowd(random.Random(f"{seed}{CROWD}"), name)
    stages = []
    for one in servers:
        side = Side(one, Known(name))
        topics = {t.name: t.topic_id for t in side.make_topics().topics}
        side.close()
        stages.append(Stage(Sockets(one), crowd, topics))

    def tell(step: str, one: Heard, found: list[tuple[str, Any, Any]]) -> None:
        comparison.replies += 1
        where, act = f"{seed} {CROWD} {step} {one.act.of}", one.act
        if comparison.is_told:
            print(f"  {one.act.of} {one.act.api}\n    ottla: {one.mine}\n    Kafka: {one.other}")
        comparison.tell(where, act.api, act.version, act.message, found)

    def note(step: str) -> None:
        if comparison.is_told:
            print(seed, CROWD, step)

    end = play(crowd, (stages[0], stages[1]), time.sleep, tell, note)
    comparison.ends[end] += 1
    for stage in stages:
        stage.door.close()


def _can_be_said(name: str, version: int, request: Any) -> bool:
    """Whether a version of an API has what a request says."""
    try:
        codec.build(f"{name}Request", version, request)
    except Exception:
        return False
    return True


def _compared(
    where: str, name: str, version: int, sides: tuple[Side, Side], requests: list[Any], comparison: Comparison
) -> tuple[list[Any], bool]:
    """Asks both, and tells what differs; returns the replies, and whether anything does."""
    found, replies = _asked(name, version, sides, requests, comparison)
    comparison.replies += 1
    learn((sides[0].known, sides[1].known), *replies)
    if comparison.is_told:
        print(f"{where}: {name} v{version} {requests[1]}\n  ottla: {replies[0]}\n  Kafka: {replies[1]}")
    comparison.tell(where, name, version, requests[1], found)
    return replies, bool(found)


def _settled(side: Side, name: str, version: int, request: Any) -> Any:
    """Asks a broker; again for a while where the end of a transaction is still on its way."""
    until_s = time.monotonic() + BEHIND_SECONDS
    while True:
        reply = side.ask(name, version, request)
        if BEHIND.isdisjoint(errors_in(reply)) or time.monotonic() > until_s:
            return reply


def _asked(
    name: str, version: int, sides: tuple[Side, Side], requests: list[Any], comparison: Comparison
) -> tuple[list[tuple[str, Any, Any]], list[Any]]:
    """Asks both; asks again for a while if the replies differ and nothing is changed by that."""
    until_s = time.monotonic() + BEHIND_SECONDS
    while True:
        replies = [_settled(side, name, version, request) for side, request in zip(sides, requests, strict=True)]
        found = comparison.unlike(name, sides, *replies)
        if not found or not name.startswith(READS) or time.monotonic() > until_s:
            return found, replies


_APIS: Final = {api.name: api for api in apis().values()}


def _episodes(seed: int, count: int, families: list[str], servers: tuple[str, str], comparison: Comparison) -> None:
    for number in range(seed, seed + count):
        for family in families:
            if family == CROWD:
                mingle(number, servers, comparison)
            else:
                (work if family in CLIENTS else episode)(number, family, servers, comparison)


def main() -> None:
    seed, episodes = int(sys.argv[1]), int(sys.argv[2])
    families = [name for name in sys.argv[3:] if name not in WORDS] or [*FAMILIES, *CLIENTS, CROWD]
    comparison = Comparison("tell" in sys.argv, "odd" in sys.argv)
    plain, secured = [one for one in families if one not in SECURED], [one for one in families if one in SECURED]
    if plain:
        with (
            Broker({**AT_ONCE, **SETTINGS}, lab=False) as ours,
            Kafka({**SETTINGS, **WITHOUT_RETENTION, **IN_ORDER}) as kafka,
        ):
            servers = ours.bootstrap_servers, kafka.bootstrap_servers
            for one in servers:
                await_coordinators(one)
            _episodes(seed, episodes, plain, servers, comparison)
    if secured:
        with authorizing_brokers({**AT_ONCE, **SETTINGS}, {**WITHOUT_RETENTION, **IN_ORDER}) as servers:
            _episodes(seed, episodes, secured, servers, comparison)
    if comparison.ends:
        print("ends:", ", ".join(f"{count} {end}" for end, count in comparison.ends.most_common()))
    print(f"{comparison.replies} replies; places that differed:")
    for place, count in comparison.counts.most_common():
        print(f"{count:6d}  {'  '.join(place)}")


if __name__ == "__main__":
    main()
