"""Reports of the verdict on the clients of one broker: live and by its trace."""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Iterable
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

from ottla.verdict.from_trace import examine
from ottla.verdict.report import ClientReport
from ottla.verdict.rule import Rule
from ottla.verdict.rules import all_rules

from ottla.testing import Broker
from ottla.traces.reading import read

TIMES = "mono_us", "idle_us", "has_gone"
"""What events say of how long something took, and what compares it for several rules."""
SAME_SECONDS = 30.0
"""After which reports are looked at once more: each look examines the whole trace, which takes a busy machine long."""
PAUSE_SECONDS = 0.2


@cache
def measuring() -> frozenset[str]:
    """The rules that look at how long something took, in their own code or in that of their base classes."""
    return frozenset(one.about.id for one in all_rules() if any(map(_measures, one.__mro__)))


def _measures(kind: type[object]) -> bool:
    is_part = issubclass(kind, Rule) and kind is not Rule
    return is_part and any(name in inspect.getsource(kind) for name in TIMES)


def timeless(reports: Iterable[ClientReport]) -> list[Any]:
    """Reports without times and without what the rules say that measure time, in the order of their clients. A trace
    and a verdict each look at the clock, and a busy machine may do something else between them for longer than a rule
    allows: such a rule can have one outcome live and another by the trace. That both say the same of the same times is
    tested with scripts.
    """
    found = json.loads(
        json.dumps(list(reports)), object_hook=lambda one: {k: v for k, v in one.items() if k != "at_ms"}
    )
    for one in found:
        one["rules"] = [rule for rule in one["rules"] if rule["id"] not in measuring()]
    return sorted(found, key=lambda one: (one["client_id"] or "", one["software"], one["software_version"]))


def same_by_trace(broker: Broker, trace: Path) -> list[ClientReport]:
    """Returns the reports on the clients of a broker when they are the same live and by its trace: connections may
    still be closing, and the trace be written.
    """
    end = time.monotonic() + SAME_SECONDS
    while True:
        is_last = time.monotonic() > end
        verdict = broker.lab.get("verdict")
        found = unlike(verdict["clients"], examine(read(trace)).report())
        if not found:
            clients: list[ClientReport] = verdict["clients"]
            return clients
        assert not is_last, "\n".join([f"the trace says something else ({verdict['dropped']} dropped)", *found])
        time.sleep(PAUSE_SECONDS)


def unlike(live: Iterable[ClientReport], traced: Iterable[ClientReport]) -> list[str]:
    """Returns what differs between two reports, `timeless`: which clients there are, or what is said of one."""
    a, b = ({_who(one): one["rules"] for one in timeless(reports)} for reports in (live, traced))
    if list(a) != list(b):
        return [f"live {list(a)}, and by the trace {list(b)}"]
    return [
        f"{who}: live {_said(of_live)}, and by the trace {_said(of_trace)}"
        for who in a
        for of_live, of_trace in zip_longest(a[who], b[who])
        if of_live != of_trace
    ]


def _who(client: Any) -> str:
    return f"{client['client_id']} ({client['software']} {client['software_version']}, {client['host']})"


def _said(rule: Any) -> str:
    """What is said by a rule, in short."""
    return str(rule and {name: rule[name] for name in ("id", "outcome", "kept", "failed", "failures")})
