"""Clients go through the examinations of the verdict: all that these provoke comes to them, and a client fails no rule
that the page of the documentation does not tell of.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from ottla.verdict.report import lines

from ottla.testing import Broker

from ..support.librdkafka import fresh, member, poll_until
from ..support.poll import until
from . import endings, verdicts
from .examinations import Seen, examination
from .verdict_page import DATA, ENDINGS, Examined, failed, findings, outcomes
from .verdicts import its_own, main, of_rules, run_of
from .well_known import CLIENTS

pytestmark = pytest.mark.slow

BY_NAME = {one.name: one for one in CLIENTS}
IDEMPOTENCE = {"KIP-98.sequences-in-order", "KIP-98.batch-unchanged"}
NETWORK = {"KIP-219.throttle-kept", "KIP-580.back-off", "protocol.coordinator-found-again"}
CLASSIC = {"classic-group.rejoins-in-time", "classic-group.each-member-assigned", "classic-group.commits-own"}
STATIC = {"KIP-345.static-id-sent", "KIP-345.static-stays"}
CONSUMER = {
    *("KIP-848.rejoins-when-fenced", "KIP-1082.member-id-kept", "KIP-848.assignment-told"),
    "KIP-848.static-leaves-for-now",
}
SHARE = {
    *("KIP-932.rejoins-when-fenced", "KIP-932.session-restarted", "KIP-932.acknowledges-acquired"),
    *("KIP-1222.renewal-marked", "KIP-1222.renews-in-time"),
}
ZSTD = "KIP-110.zstd-version"
JAVA = {
    "basic": {"KIP-516.topic-id-known", "KIP-320.metadata-refreshed", "KIP-227.session-restarted", ZSTD},
    "idempotence": IDEMPOTENCE,
    "transactions": {"KIP-890.aborts-after-abortable", "KIP-98.commit-after-writes", "KIP-447.member-named"},
    "classic-group": {*CLASSIC, *STATIC, "KIP-394.member-id-kept", "KIP-429.claims-own", "KIP-814.assignment-skipped"},
    "consumer-group": CONSUMER,
    "share-group": SHARE,
    "network": NETWORK,
}
LIBRDKAFKA = {
    "basic": {"KIP-35.api-versions-first", "KIP-320.metadata-refreshed", "protocol.metadata-first", ZSTD},
    "idempotence": IDEMPOTENCE,
    "transactions": {"KIP-98.commit-after-writes", "KIP-98.partitions-added", "KIP-98.offsets-added"},
    "classic-group": CLASSIC | STATIC,
    "consumer-group": CONSUMER,
    "network": NETWORK,
}


@pytest.mark.parametrize(
    ("name", "run", "expected"),
    [
        *(pytest.param("Java", *one, marks=pytest.mark.oracle) for one in JAVA.items()),
        *(("librdkafka", *one) for one in LIBRDKAFKA.items()),
        ("aiokafka", "classic-group", CLASSIC),
        ("kafka-python", "basic", {"KIP-320.metadata-refreshed", "KIP-227.session-restarted"}),
        ("kafka-python", "idempotence", IDEMPOTENCE),
    ],
)
def test_a_client_goes_through(name: str, run: str, expected: set[str], tmp_path: Path) -> None:
    client = BY_NAME[name]
    known = {one["name"]: one for one in json.loads(DATA.read_text())}[name]["runs"][run]
    seen = examination(run, client.prepared(tmp_path), tmp_path, never=known["missed"])
    assert seen.missed == known["missed"]
    found = run_of(its_own(client, seen.clients))
    unknown = set(found["failures"]) - set(findings().get(name, {}))
    assert unknown == set(), "\n".join(lines(seen.clients))
    assert expected <= {id for id, outcome in found["rules"].items() if outcome == "passed"}


@pytest.mark.parametrize("name", [pytest.param("Java", marks=pytest.mark.oracle), "librdkafka"])
def test_a_client_meets_the_errors_that_end_it(name: str, tmp_path: Path) -> None:
    """And does about them what the page says."""
    client = BY_NAME[name]
    known = {one["name"]: one for one in json.loads(DATA.read_text())}[name]["runs"][ENDINGS]
    seen = endings.endings(client.prepared(tmp_path), tmp_path, client.lacks_endings)
    found = of_rules(run_of(its_own(client, seen.clients), seen.missed), endings.RULES)
    assert (found["missed"], found["rules"]) == (known["missed"], known["rules"]), "\n".join(lines(seen.clients))


@pytest.mark.parametrize(("assignor", "outcome"), [("range", "passed"), ("cooperative-sticky", "failed")])
def test_librdkafka_leaves_without_partitions_unless_cooperative(assignor: str, outcome: str) -> None:
    with Broker() as broker, broker.lab.verdict("classic-group") as verdict:
        topic = fresh(broker, partitions=1)
        more = {"partition.assignment.strategy": assignor}
        members = [member(broker, topic, "classic", **more) for _ in range(2)]
        assigned: set[int] = set()  # members that know what they have, or that they have nothing
        for number, one in enumerate(members):
            one.subscribe([topic], on_assign=lambda consumer, partitions, number=number: assigned.add(number))

        def shared() -> bool:
            found = [one for one in broker.lab.get("groups")["groups"] if one["group"] == topic]
            return len(assigned) == 2 and [(one["state"], one["members"]) for one in found] == [("Stable", 2)]

        poll_until(lambda: any(one.assignment() for one in members) and shared(), *members)
        (idle,) = (one for one in members if not one.assignment())
        idle.close()
        until(lambda: verdict.outcomes()["KIP-62.leaves-at-close"] == outcome, f"the verdict on {assignor}")
        for one in members:
            one.close()


def test_the_page_is_made_again_for_one_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What never comes to the client is known, and not waited for."""
    known = {one["name"]: one for one in json.loads(DATA.read_text())}["aiokafka"]["runs"]

    def soon(run: str, command: Sequence[str], directory: Path) -> Seen:
        return examination(run, command, directory, never=known[run]["missed"])

    monkeypatch.setattr(verdicts, "examination", soon)
    data, page = tmp_path / "clients.json", tmp_path / "clients.md"
    main(["aiokafka"], data, page)
    (found,) = json.loads(data.read_text())
    assert set(found) == set(Examined.__annotations__)
    assert found["version"] == BY_NAME["aiokafka"].version()
    assert set(failed(found)) <= set(findings()["aiokafka"])
    assert {"KIP-98.sequences-in-order", "KIP-219.throttle-kept", *CLASSIC} <= {
        id for id, outcome in outcomes(found).items() if outcome == "passed"
    }
    assert f"| aiokafka (Python) | {found['version']} |" in page.read_text()


def test_one_run_of_a_client_is_made_again_and_the_others_stay(tmp_path: Path) -> None:
    data, page = tmp_path / "clients.json", tmp_path / "clients.md"
    before = {one["name"]: one for one in json.loads(DATA.read_text())}
    data.write_text(json.dumps([{**before["aiokafka"], "version": "0"}]))
    main(["aiokafka:idempotence"], data, page)
    (found,) = json.loads(data.read_text())
    assert found["version"] == BY_NAME["aiokafka"].version()
    others = set(before["aiokafka"]["runs"]) - {"idempotence"}
    assert {name: found["runs"][name] for name in others} == {name: before["aiokafka"]["runs"][name] for name in others}
    assert {id for id, sign in found["runs"]["idempotence"]["rules"].items() if sign == "passed"} >= IDEMPOTENCE
