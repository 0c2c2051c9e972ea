"""Traces as they are found, dealt to tasks and examined there, without Spark: with the verdict of `ottla verdict`."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from ottla.pipeline.judging import Asked, Row, rows
from ottla.pipeline.traces import SPLIT_BYTES_MIN, Trace, Unit, dealt, found
from ottla.verdict.examiner import Share
from ottla.verdict.from_trace import examine

from ottla.traces import reading

from ..support.seeds import seeds
from ..support.traced_clients import HEAD, Traced, bytes_of
from ..support.verdict_client_cases import all_addresses_tried, closed_while_idle, in_flight_limit, starts_anew
from ..support.verdict_script import Script

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


def written(path: Path, lines: list[bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def names(traces: list[Trace], root: Path) -> dict[str, list[str]]:
    return {one.name.removeprefix(f"{root}/"): [file.removeprefix(f"{root}/") for file in one.files] for one in traces}


def examined(trace: Trace, count: int = 1, **asked: Any) -> list[Row]:
    """The rows of a trace, of all its shares."""
    made = [row for n in range(count) for row in rows(Unit(trace, Share(n, count)), Asked(**asked))]
    return sorted(made, key=lambda row: (row.get("client", -1), "rule" not in row))


def reports(found: list[Row]) -> list[Row]:
    """What rows say of clients, as `ottla verdict --json` has it, but for the words about a rule."""
    clients: dict[object, Row] = {}
    for row in found:
        if "rule" not in row:
            continue
        who = {"client_id": row["clientId"], "software": row["software"], "software_version": row["softwareVersion"]}
        client = clients.setdefault(row["client"], {**who, "host": row["host"], "rules": []})
        rules: Any = client["rules"]
        names = ("examination", "severity", "outcome", "kept", "failed", "failures")
        rules.append({"id": row["rule"], **{name: row[name] for name in names}})
    return list(clients.values())


def wordless(report: Any) -> Any:
    return {
        **report,
        "rules": [{k: v for k, v in one.items() if k not in ("what", "why", "link")} for one in report["rules"]],
    }


def by_command(path: str) -> list[Any]:
    """What `ottla verdict` says of a trace."""
    return [wordless(one) for one in examine(reading.read(Path(path))).report()]


def test_traces_are_found_in_directories_and_below(tmp_path: Path) -> None:
    for name in ("run-1/a/t.jsonl", "run-1/a/t.jsonl.1.gz", "run-1/b/t.jsonl", "run-2/t.jsonl.zst", "run-2/trace"):
        compress = COMPRESS[Path(name).suffix if Path(name).suffix in COMPRESS else ""]
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(compress(bytes_of(HEAD) + b"\n"))
    for name in ("run-2/other.log", "run-2/broken.gz"):
        (tmp_path / name).write_bytes(b"nothing of a trace\n")
    (tmp_path / "run-2" / "again").symlink_to(tmp_path)
    (tmp_path / "run-2" / "dangling.jsonl").symlink_to(tmp_path / "nowhere")
    assert names(found([str(tmp_path)]), tmp_path) == {
        "run-1/a/t.jsonl": ["run-1/a/t.jsonl.1.gz", "run-1/a/t.jsonl"],
        "run-1/b/t.jsonl": ["run-1/b/t.jsonl"],
        "run-2/t.jsonl.zst": ["run-2/t.jsonl.zst"],
        "run-2/trace": ["run-2/trace"],
    }


def test_a_file_is_found_with_those_that_were_full_and_only_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("t", "t.1", "u.jsonl"):
        written(tmp_path / name, [bytes_of(HEAD)])
    monkeypatch.chdir(tmp_path)
    assert [one.files for one in found(["t", "t.1", "./t", "t"])] == [("t.1", "t"), ("t.1",)]


def test_a_place_without_traces_is_refused(tmp_path: Path) -> None:
    (tmp_path / "some.txt").write_text("text")
    with pytest.raises(ValueError, match="contains no trace"):
        found([str(tmp_path)])
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        found([str(tmp_path / "nowhere")])


def test_traces_in_places_that_fsspec_knows_are_found_and_examined() -> None:
    import fsspec

    files = fsspec.filesystem("memory")
    lines = Traced(1, 3).lines()
    files.pipe("/ci/run/t.jsonl.1", b"\n".join(lines[:20]) + b"\n")
    files.pipe("/ci/run/t.jsonl", b"\n".join(lines[20:]) + b"\n")
    (trace,) = found(["memory://ci"])
    assert trace.files == ("memory://ci/run/t.jsonl.1", "memory://ci/run/t.jsonl")
    assert reports(examined(trace)) == [wordless(one) for one in examine(map(json.loads, lines)).report()]


@pytest.mark.parametrize(
    ("sizes", "counts"),
    [([10], [1]), ([40] * 50, [1] * 50), ([1000], [2]), ([900, 50, 50], [2, 1, 1]), ([400, 400], [2, 2])],
)
def test_only_a_trace_that_is_large_beside_all_is_read_by_several_tasks(sizes: list[int], counts: list[int]) -> None:
    unit = SPLIT_BYTES_MIN // 30
    traces = [Trace(str(n), (str(n),), size * unit) for n, size in enumerate(sizes)]
    bins = dealt(traces, 2)
    shares = [one.share for units in bins for one in units]
    assert len(shares) == sum(counts)
    assert sorted(counts) == sorted(sum(one.trace.name == t.name for units in bins for one in units) for t in traces)
    assert len(bins) <= 8
    costs = [sum(one.cost for one in units) for units in bins]
    assert costs == sorted(costs, reverse=True) or max(costs) - min(costs) <= max(one.bytes for one in traces)


@pytest.mark.parametrize("seed", seeds(30, 5))
def test_a_trace_has_the_verdict_of_the_command_however_it_is_split(seed: int, tmp_path: Path) -> None:
    """Into files, some compressed, with lines that are cut off; and into shares."""
    chance = random.Random(seed)
    lines = Traced(seed, 1 + seed % 6).lines(accidents=0.05 * (seed % 2))
    cuts = sorted(chance.sample(range(1, len(lines)), min(seed % 4, len(lines) - 1)))
    parts = [lines[start:end] for start, end in zip([0, *cuts], [*cuts, len(lines)], strict=True)]
    for number, part in enumerate(reversed(parts)):
        suffix = chance.choice(list(COMPRESS)) if number else ""
        rest = lines[0][:30] if chance.random() < 0.2 else b""
        data = b"".join(line + b"\n" for line in part) + rest
        (tmp_path / f"t.jsonl{f'.{number}' if number else ''}{suffix}").write_bytes(COMPRESS[suffix](data))
    (trace,) = found([str(tmp_path)])
    assert len(trace.files) == len(parts)
    expected = by_command(trace.name)
    for count in (1, 2, 3):
        assert reports(examined(trace, count)) == expected, f"seed {seed}, {count} shares"


def refusal(path: Path) -> Any:
    (row,) = examined(found([str(path)])[0])
    return row["refused"]


@pytest.mark.parametrize(
    ("first", "words"),
    [
        ({**HEAD, "format": 0}, ":1: a trace of format 0; this is for format 1"),
        ({**HEAD, "format": 2}, ":1: a trace of format 2; this is for format 1"),
        ({**HEAD, "filters": {"api": "Produce"}}, ": the trace was filtered (api=Produce), and a verdict needs all "
         "requests: trace without filters"),
        ({"event": "closed", "connection": 1}, ":1: not the first line of a trace"),
        ({"no": "event"}, ":1: not an event of a trace"),
        ([1], ":1: not an event of a trace"),
    ],
)  # fmt: skip
def test_what_is_no_whole_trace_of_this_format_is_set_aside_with_a_reason(
    first: Any, words: str, tmp_path: Path
) -> None:
    path = written(tmp_path / "t.jsonl", [json.dumps(first).encode(), *Traced(1, 2).lines()[1:]])
    assert refusal(path) == f"{path}{words}"


def test_an_empty_file_and_one_that_is_damaged_are_set_aside(tmp_path: Path) -> None:
    empty, cut, wrong = (tmp_path / name for name in ("empty.jsonl", "cut.jsonl", "wrong.jsonl.gz"))
    empty.write_bytes(b"")
    cut.write_bytes(bytes_of(HEAD)[:50])
    wrong.write_bytes(b"this is not gzip")
    assert refusal(empty) == f"{empty}: no complete line"
    assert refusal(cut) == f"{cut}: no complete line"
    assert refusal(wrong).startswith(f"{wrong}: cannot be decompressed: ")


def test_a_file_that_is_gone_is_set_aside(tmp_path: Path) -> None:
    path = written(tmp_path / "t.jsonl", Traced(1, 1).lines())
    (trace,) = found([str(path)])
    path.unlink()
    (row,) = examined(trace)
    assert "No such file" in str(row["refused"])


def test_a_trace_says_what_was_read_and_what_was_not(tmp_path: Path) -> None:
    lines = [*Traced(3, 2).lines(), b"broken", bytes_of({"event": "dropped", "at_ms": 1, "count": 7})]
    (trace,) = found([str(written(tmp_path / "t.jsonl", lines))])
    for count in (1, 2):
        for row in (one for one in examined(trace, count) if "rule" not in one):
            assert {**row, "trace": ""} == {
                "trace": "", "startedMs": HEAD["clock_ms"], "shares": count, "broker": "ottla 1",
                "clusterId": "c", "nodeId": 1, "files": 1, "lines": len(lines), "damagedLines": 1, "droppedEvents": 7,
                "unexaminedRequests": 0, "refused": None,
            }  # fmt: skip


def test_only_rules_and_traces_that_were_asked_for(tmp_path: Path) -> None:
    (trace,) = found([str(written(tmp_path / "t.jsonl", Traced(1, 3).lines()))])
    assert {row["examination"] for row in examined(trace, examination="network") if "rule" in row} == {"network"}
    assert examined(trace, since_ms=HEAD["clock_ms"] + 1) == []
    assert examined(trace, since_ms=HEAD["clock_ms"]) == examined(trace)


def test_values_that_no_broker_writes_fit_into_columns(tmp_path: Path) -> None:
    """A line that somebody has changed must not end a job over thousands of traces."""
    lines = [bytes_of({**HEAD, "clock_ms": 1 << 70, "node_id": "one"})]
    odd = {"client_id": "\ud800", "connection": 1 << 70, "at_ms": 1 << 70, "mono_us": None, "peer": 7}
    lines += [bytes_of({**json.loads(line), **odd}) for line in Traced(2, 2).lines()[1:]]
    (trace,) = found([str(written(tmp_path / "t.jsonl", lines))])
    head, *others = examined(trace)
    assert (head["startedMs"], head["nodeId"], head["refused"]) == (0, 0, None)
    assert {row["clientId"] for row in others} == {"?"}


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize(
    ("id", "does"),
    [
        ("KIP-98.in-flight-limit", in_flight_limit),
        ("KIP-899.bootstraps-again", starts_anew),
        ("KIP-302.all-addresses-tried", all_addresses_tried),
        ("protocol.closed-while-idle", closed_while_idle),
    ],
)
def test_what_a_trace_says_of_connections_and_waiting_requests_is_read(
    id: str, does: Callable[[Script, bool], None], right: bool, tmp_path: Path
) -> None:
    script = Script()
    does(script, right)
    lines = [HEAD, *(one | {"software": "", "software_version": ""} for one in script.lines)]
    written(tmp_path / "t.jsonl", [bytes_of(one) for one in lines])
    (trace,) = found([str(tmp_path)])
    (client,) = reports(examined(trace))
    rules: Any = client["rules"]
    outcomes = {one["id"]: (one["outcome"], one["kept"], one["failed"]) for one in rules}
    (whole,) = script.reports()
    assert outcomes == {one["id"]: (one["outcome"], one["kept"], one["failed"]) for one in whole["rules"]}
    assert outcomes[id][0] == ("passed" if right else "failed")
