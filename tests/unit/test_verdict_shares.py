"""Shares of a trace's clients: together they have the verdict of one examiner, and most lines of others are passed
over.
"""

from __future__ import annotations

import pytest
from ottla.verdict import examiner
from ottla.verdict.examiner import ALL, Share
from ottla.verdict.from_trace import TraceExaminer
from ottla.verdict.report import ClientReport
from ottla.verdict.skimming import Skimmer
from ottla.verdict.trace_lines import event_of

from ..support.seeds import seeds
from ..support.traced_clients import HEAD, Traced, bytes_of

Found = list[tuple[int, ClientReport]]


def examined(lines: list[bytes], share: Share = ALL) -> tuple[Found, int, int]:
    """The numbered reports of a share, how many lines it has passed over, and how many requests were of no client."""
    of = TraceExaminer(None, share)
    skimmer = Skimmer(of.examiner) if share.of > 1 else None
    skipped = 0
    for number, line in enumerate(lines, 1):
        if skimmer is not None and skimmer.may_skip(line):
            skipped += 1
            continue
        found = event_of(line, "t", number)
        event = of.take(found)
        if skimmer is not None:
            skimmer.took(line, found["event"], event)
    return list(of.examiner.numbered()), skipped, of.examiner.unexamined


def together(lines: list[bytes], count: int) -> Found:
    return sorted((one for n in range(count) for one in examined(lines, Share(n, count))[0]), key=lambda one: one[0])


@pytest.mark.parametrize("seed", seeds(40, 6))
def test_shares_together_have_the_verdict_of_one_examiner(seed: int) -> None:
    lines = Traced(seed, 1 + seed % 7).lines(accidents=0.1 * (seed % 3))
    whole, _, _ = examined(lines)
    assert [number for number, _ in whole] == list(range(len(whole)))
    for count in (2, 3):
        assert together(lines, count) == whole, f"seed {seed}, {count} shares"


def fetch(connection: int, number: int, client_id: str, **more: object) -> bytes:
    who = {"connection": connection, "peer": f"10.0.0.1:{5000 + connection}", "listener": "L", "principal": "User:A"}
    of = {"client_id": client_id, "software": "s", "software_version": "1", "exchange": number, "api": "Heartbeat"}
    line = {"event": "request", "at_ms": number, "mono_us": number, **who, **of, "key": 12, "version": 4}
    return bytes_of({**line, "correlation_id": number, "size": 10, "message": None, **more})


def test_the_lines_of_others_are_passed_over() -> None:
    lines = [bytes_of(HEAD), *(fetch(1 + n % 2, n, f"client-{n % 2}") for n in range(100))]
    for number in (0, 1):
        (((position, report),), skipped, _) = examined(lines, Share(number, 2))
        assert (position, report["client_id"]) == (number, f"client-{number}")
        assert skipped == 49, "all but the first of the other client"


def test_a_line_that_no_broker_has_written_so_is_not_passed_over() -> None:
    """The client id comes after the exchange: two clients have the same text before it."""
    spread = [fetch(1, n, "a" if n % 2 else "b") for n in range(10)]
    moved = [line.replace(b'"client_id":"%c",' % name, b"") for line, name in zip(spread, b"ba" * 5, strict=True)]
    lines = [line[:-1] + b',"client_id":"%c"}' % name for line, name in zip(moved, b"ba" * 5, strict=True)]
    assert together([bytes_of(HEAD), *lines], 2) == examined([bytes_of(HEAD), *lines])[0]
    assert examined([bytes_of(HEAD), *lines], Share(0, 2))[1] == 0


def test_clients_beyond_the_limit_are_the_same_in_all_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examiner, "CLIENTS_MAX", 5)
    lines = [bytes_of(HEAD), *(fetch(n, n, f"client-{n}") for n in range(7))]
    whole, _, unexamined = examined(lines)
    assert (len(whole), unexamined) == (5, 2)
    assert together(lines, 2) == whole
    assert [examined(lines, Share(number, 2))[2] for number in (0, 1)] == [2, 2]
