"""The verdict on well-known clients: `python -m tests.clients.verdicts [NAME[:RUN]...]` (`make verdicts`).

Each client does its plain work on a broker of its own, which examines it by all rules and writes a trace; the report is
the same by both. Then it goes through each examination, whose faults provoke what does not occur by itself, and through
an unclean election. What is found goes into `docs/reference/clients.json`, and with the findings of
`verdict_findings.yaml` into the page beside it.
With names only those clients are examined again; `kcat:basic` is one run of one.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from ottla.verdict.report import ClientReport, Together

from ottla.testing import Broker

from ..support.hosts import may_have_hosts_of_its_own
from ..support.kcat import Missing, put_on_path
from ..support.verdict_reports import same_by_trace
from . import addresses, connections, endings, login, truncation
from .examinations import examination
from .plain_troubles import SMALL, go_astray
from .verdict_page import (
    ADDRESSES,
    CONNECTIONS,
    DATA,
    ENDINGS,
    LOGIN,
    PAGE,
    RUNS,
    TRUNCATION,
    WORK,
    Examined,
    Run,
    findings,
    page,
)
from .well_known import CLIENTS, Client

SETTINGS: Final[dict[str, object]] = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 200,
    "group.share.min.record.lock.duration.ms": 1000,
}
OWN: Final = {
    TRUNCATION: (truncation.truncation, truncation.RULES),
    LOGIN: (login.login, login.RULES),
    CONNECTIONS: (connections.connections, connections.RULES),
    ADDRESSES: (addresses.addresses, addresses.RULES),
}
"""The runs that need a broker with settings of its own, and the rules that count there."""


def report(client: Client, directory: Path) -> list[ClientReport]:
    """Lets a client do its plain work; returns what is found, which is the same live and by the trace."""
    trace = directory / "trace.jsonl"
    with Broker({**SETTINGS, "ottla.trace": str(trace)}) as broker:
        broker.lab.seed({"name": SMALL, "configs": {"max.message.bytes": "1000"}})
        go_astray(broker)
        broker.lab.post("verdict")
        client.work(broker, directory)
        return its_own(client, same_by_trace(broker, trace))


def its_own(client: Client, reports: Iterable[ClientReport]) -> list[ClientReport]:
    """The reports on a client, without those on others that its programs use."""
    return [one for one in reports if one["software"] == client.software]


def runs(client: Client, wanted: str | None = None) -> Iterator[tuple[str, Run]]:
    """Lets a client do all of its work, or one run of it."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        if wanted in (None, WORK):
            yield WORK, run_of(report(client, directory))
        names = [one for one in RUNS[1:] if one not in client.lacks and wanted in (None, one)]
        if ADDRESSES in names and not may_have_hosts_of_its_own():
            print(f"{ADDRESSES}: left as it is, because a program cannot have a file of hosts of its own here")
            names.remove(ADDRESSES)
        command = client.prepared(directory) if names else []
        for one in names:
            if one == ENDINGS:
                seen = endings.endings(command, directory, client.lacks_endings)
                yield one, of_rules(run_of(its_own(client, seen.clients), seen.missed), endings.RULES)
            elif one in OWN:
                go, rules = OWN[one]
                seen = go(command, directory)
                yield one, of_rules(run_of(its_own(client, seen.clients), seen.missed), rules)
            else:
                seen = examination(one, command, directory)
                yield one, run_of(its_own(client, seen.clients), seen.missed)


def run_of(reports: Iterable[ClientReport], missed: Iterable[str] = ()) -> Run:
    together = Together()
    for one in reports:
        together.add(one)
    found = together.reports()
    return Run(
        rules={one["id"]: _outcome(one["outcome"], one["severity"]) for one in found},
        failures={one["id"]: one["failures"][0]["words"] for one in found if one["failures"]},
        missed=list(missed),
    )


def of_rules(run: Run, ids: Sequence[str]) -> Run:
    """What a run says of some rules."""
    words = {id: one for id, one in run["failures"].items() if id in ids}
    return Run(rules={id: run["rules"].get(id, "not exercised") for id in ids}, failures=words, missed=run["missed"])


def _outcome(outcome: str, severity: str) -> str:
    return "warning" if outcome == "failed" and severity == "warning" else outcome


def examined(client: Client, before: Examined | None, only: str | None = None) -> Examined:
    """What is found of a client; the runs that are not asked for are those of before."""
    kept = dict(before["runs"]) if before is not None else {}
    for name, run in runs(client, only):
        print(client.name, name, *(f"\n  {id}: {words}" for id, words in run["failures"].items()))
        kept[name] = run
    return Examined(
        name=client.name,
        language=client.language,
        version=client.version(),
        lacks={str(name): lack for name, lack in client.lacks.items()},
        runs={name: kept[name] for name in RUNS if name in kept},
    )


def main(names: list[str], data: Path = DATA, to: Path = PAGE) -> None:
    with suppress(Missing):
        put_on_path()
    wanted = {name: run or None for name, _, run in (one.partition(":") for one in names)}
    before: dict[str, Examined] = {one["name"]: one for one in json.loads(data.read_text())} if data.exists() else {}
    for client in CLIENTS:
        missing = [one for one in client.needs if shutil.which(one) is None]
        if wanted and client.name not in wanted:
            continue
        if missing:
            print(f"{client.name}: left as it is, because {' and '.join(missing)} is not here")
            continue
        before[client.name] = examined(client, before.get(client.name), wanted.get(client.name))
        found = [before[one.name] for one in CLIENTS if one.name in before]
        data.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
        to.write_text(page(found, findings()))


if __name__ == "__main__":
    main(sys.argv[1:])
