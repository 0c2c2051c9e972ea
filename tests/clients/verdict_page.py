"""The page of the documentation about well-known clients, made of what `verdicts` has found and of the findings that
people have compared with the clients' sources.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NotRequired, TypedDict

import yaml
from ottla.verdict.rule import EXAMINATIONS
from ottla.verdict.rules import all_rules

from ..support.sources import ROOT

DATA: Final = ROOT / "docs" / "reference" / "clients.json"
PAGE: Final = ROOT / "docs" / "reference" / "clients.md"
FINDINGS: Final = ROOT / "tests" / "clients" / "verdict_findings.yaml"
WORK: Final = "work"
"""The run without faults, in which all rules are examined."""
TRUNCATION: Final = "truncation"
"""The run on several nodes, in which records that were read are cut off."""
LOGIN: Final = "login"
"""The run of clients that log in, in sessions that end."""
CONNECTIONS: Final = "connections"
"""The run in which idle connections are closed, and the broker that the client knows is lost for a while."""
ADDRESSES: Final = "addresses"
"""The run in which only one address of the broker's name is served."""
ENDINGS: Final = "fatal"
"""The run in which errors end the client."""
RUNS: Final = (WORK, *EXAMINATIONS, TRUNCATION, LOGIN, CONNECTIONS, ADDRESSES, ENDINGS)
WORST: Final = ("failed", "warning", "passed", "not exercised")
SIGNS: Final = {"passed": "✓", "failed": "✗", "warning": "!", "not exercised": ""}
INTRODUCTION: Final = """\
# The verdict on well-known clients

What eight clients do by [the rules of the verdict](verdict.md), with the retries and back-offs that each has by itself.
Heartbeats and waits are short, Java's members of examined classic groups are cooperative, and librdkafka's examined
transactional producer does not bootstrap again. In `network` Java's clients close connections that were idle for
3.5 seconds (`connections.max.idle.ms`).

Each client did its plain work on a broker that examined it by all rules: it produced with idempotence, consumed in
groups whose members came and went, and did transactions, as far as it has them. Then it went through [the
examinations](../how-to/verdict.md#an-examination), each on a broker of its own whose faults provoke what does not occur
by itself. Its records were compressed with zstd in `basic`, a static member came and came again at the end of
`classic-group` and `consumer-group`, and locks were renewed at the end of `share-group`. In `truncation` it only read,
on three nodes: a follower was held while it went on reading, and became the leader by an unclean election, so that
records were cut off which the client had read; then the other node led again. In `login` it logged in, in sessions of
12 seconds (`connections.max.reauth.ms`), and worked for longer. In `connections` it sent a record every three seconds
to a broker that closed connections after one second (`connections.max.idle.ms`), and could then not reach that broker
for 20 seconds, except by its bootstrap servers. In `addresses` the broker had a name with the addresses 127.0.0.1 and
127.0.0.2, of which only one was served, and the other one when the program was run again. In `fatal` it did
transactions, sent records that did not wait for each other, and was a static member and a member of a group of KIP-848,
as far as it can, and met an error in each that ends it; its program began again as long as a run met what none before
had met.
`make verdicts` makes this page and its data (`clients.json`) again, and `make verdicts ARGS=kcat:network` one run of
it: the runs of a page can be of different days.

In the table, 11/1/16 is: 11 rules passed, 1 failed, 16 not exercised. A failure with the sign ! is of a rule whose
violation costs something and breaks nothing (a warning).
"""


class Run(TypedDict):
    """A run of a client. `rules`: the outcome of each; `failures`: the words of the first failure; `missed`: faults of
    the examination that the client gave no occasion for, as API and number of the request.
    """

    rules: dict[str, str]
    failures: dict[str, str]
    missed: list[str]


class Examined(TypedDict):
    """A client. `lacks`: the examinations that it has nothing for, and what it lacks; `runs`: the plain work, and the
    examinations.
    """

    name: str
    language: str
    version: str
    lacks: dict[str, str]
    runs: dict[str, Run]


class Finding(TypedDict):
    """What a client does instead, and where its code says so. `at_times`: if the rule fails in some runs only."""

    does: str
    where: str
    at_times: NotRequired[bool]


def findings() -> dict[str, dict[str, Finding]]:
    """By client and rule."""
    found: dict[str, dict[str, Finding]] = yaml.safe_load(FINDINGS.read_text())
    return found


def outcomes(one: Examined) -> dict[str, str]:
    """The outcome of each rule in all runs of a client: the worst."""
    found: dict[str, str] = {}
    for run in one["runs"].values():
        for id, outcome in run["rules"].items():
            found[id] = min(found.get(id, outcome), outcome, key=WORST.index)
    return found


def failed(one: Examined) -> list[str]:
    """The rules that a client failed in a run."""
    return [id for id, outcome in outcomes(one).items() if outcome in ("failed", "warning")]


def page(data: list[Examined], found: dict[str, dict[str, Finding]]) -> str:
    return "\n".join([*_head(data), *_findings(data, found), *_matrix(data)]) + "\n"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _head(data: list[Examined]) -> Iterator[str]:
    yield INTRODUCTION
    yield _row("client", "version", "plain work", *(f"`{one}`" for one in RUNS[1:]))
    yield f"|---|---|{'---:|' * len(RUNS)}"
    for one in data:
        cells = ("n/a" if name in one["lacks"] else _cell(one["runs"].get(name)) for name in RUNS)
        yield _row(f"{one['name']} ({one['language']})", one["version"], *cells)
    yield ""
    for one in data:
        yield from _notes(one)
    yield ""


def _cell(run: Run | None) -> str:
    if run is None:
        return ""
    counts = Counter(run["rules"].values())
    failures = [f"{counts[outcome]}{sign}" for outcome, sign in (("failed", ""), ("warning", "!")) if counts[outcome]]
    return f"{counts['passed']}/{'+'.join(failures) or 0}/{counts['not exercised']}"


def _notes(one: Examined) -> Iterator[str]:
    """What there was no occasion for."""
    by_lack: dict[str, list[str]] = {}
    for name, lack in one["lacks"].items():
        by_lack.setdefault(lack, []).append(name)
    texts = [f"{_code(names)} n/a: {lack}" for lack, names in by_lack.items()]
    texts += [f"`{name}` did not come to {_code(run['missed'])}" for name, run in one["runs"].items() if run["missed"]]
    if texts:
        yield f"- {one['name']}: {'; '.join(texts)}."


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{one}`" for one in names)


def _findings(data: list[Examined], found: dict[str, dict[str, Finding]]) -> Iterator[str]:
    yield "## What was found"
    yield ""
    yield "Each finding was compared with the client's source, in the version of the table above."
    yield ""
    yield _row("client", "rule", "outcome", "what the client does", "what it costs", "where")
    yield "|---|---|---|---|---|---|"
    about = {one.about.id: one.about for one in all_rules()}
    for one in data:
        found_here = found.get(one["name"], {})
        for id in dict.fromkeys((*failed(one), *found_here)):
            finding = found_here.get(id, Finding(does="Not looked at yet.", where="-"))
            how = "at times" if finding.get("at_times") else outcomes(one)[id]
            yield _row(one["name"], f"`{id}`", how, finding["does"], about[id].why, finding["where"])
    without = [one["name"] for one in data if not failed(one) and not found.get(one["name"])]
    yield ""
    if without:
        yield f"No rule failed: {', '.join(without)}."
        yield ""


def _matrix(data: list[Examined]) -> Iterator[str]:
    yield "## All rules"
    yield ""
    yield "In all runs of a client: ✓ passed, ✗ failed, ! failed (a warning); empty where the rule was not exercised."
    yield ""
    yield f"| rule | {' | '.join(one['name'] for one in data)} |"
    yield f"|---|{':---:|' * len(data)}"
    found = [outcomes(one) for one in data]
    for id in dict.fromkeys(id for one in found for id in one):
        signs = " | ".join(SIGNS[one.get(id, "not exercised")] for one in found)
        yield f"| `{id}` | {signs} |"
