"""How the pages of `ottla ui` write numbers, sizes, spans and times, what they read, and series of metrics."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner
from ottla.broker.lab.openapi import document

from ottla.cli import main
from ottla.ui import words
from ottla.ui.pages.faults import kinds_of, values_of
from ottla.ui.pages.records import offset_of, time_of
from ottla.ui.pages.topic import bar
from ottla.ui.series import Sample, Series, parse


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (1 << 20, "1.0 MiB"),
        (3 << 60, "3145728.0 TiB"),
    ],
)
def test_sizes(value: int, text: str) -> None:
    assert words.size(value) == text


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        *[(None, "–"), (0, "0 ms"), (999, "999 ms"), (1500, "1.5 s"), (59_900, "59.9 s"), (200_000, "3 m 20 s")],
        *[(7_500_000, "2 h 5 m"), (273_600_000, "3 d 4 h")],
    ],
)
def test_spans(ms: int | None, text: str) -> None:
    assert words.span(ms) == text


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        *[(0, "1970-01-01 00:00:00.000"), (1_700_000_000_123, "2023-11-14 22:13:20.123"), (-1, "–"), (None, "–")],
        (1 << 62, str(1 << 62)),
    ],
)
def test_times(ms: int | None, text: str) -> None:
    assert words.time(ms) == text


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1700000000123", 1_700_000_000_123),
        ("2023-11-14 22:13:20", 1_700_000_000_000),
        ("2023-11-14T23:13:20+01:00", 1_700_000_000_000),
        ("22:13", 1_699_999_980_000),
        *[("yesterday", None), ("", None), ("25:00", None)],
    ],
)
def test_times_are_read_as_they_are_written(text: str, ms: int | None) -> None:
    assert time_of(text, datetime(2023, 11, 14, tzinfo=UTC)) == ms


def test_partitions_are_written_as_ranges() -> None:
    partitions = [{"topic": "a", "partitions": [3, 0, 1, 2, 7]}, {"topic": "b", "partitions": [5]}]
    assert words.places(partitions) == "a 0-3,7  b 5"
    assert words.places([]) == "–"


def test_a_long_text_is_cut_to_one_line() -> None:
    assert words.short("a\nb\tc\r") == "a↵b→c"
    assert words.short("x" * 10, 5) == "xxxx…"


def test_a_long_name_is_cut_in_its_middle() -> None:
    assert words.middle("consumer-1", 10) == "consumer-1"
    assert words.middle("consumer-1", 7) == "con…r-1"
    assert words.middle("a\nb", 9) == "a↵b"


def test_a_bar_shows_what_is_stable_in_transactions_and_hidden() -> None:
    assert bar(0, 50, 75, 100).count("50.0%") == 2
    assert "75.0%" in bar(0, 50, 75, 100)
    assert bar(5, 5, 5, 5) == "var(--line)"


def test_the_kinds_of_faults_are_what_the_broker_says() -> None:
    kinds = kinds_of(json.loads(json.dumps(document())))
    assert kinds["error"].values == {"error": "NOT_LEADER_OR_FOLLOWER"}
    assert "waits" in kinds["delay"].words
    assert len(kinds) > 10
    assert values_of("every=3 share=0.5 topic=a word=") == {"every": 3, "share": 0.5, "topic": "a", "word": ""}


def test_counters_become_rates_and_the_largest_series_are_shown() -> None:
    series = Series("hits", True, "api", 1)

    def add(at_ms: float, **counts: float) -> None:
        series.add(at_ms, [Sample("hits", {"api": api}, value) for api, value in counts.items()])

    add(0, a=10, b=10)
    add(1000, a=20, b=1010)
    add(3000, a=0, b=1030)  # a began again
    assert series.points() == {"b": [[1000, 1000.0], [3000, 10.0]]}


def test_samples_are_read_and_those_that_are_no_numbers_left_out() -> None:
    assert parse('hits_total{api="a"} 2.0\nlag NaN\n') == [Sample("hits_total", {"api": "a"}, 2.0)]


@pytest.mark.long
def test_without_the_extra_the_command_says_what_to_install() -> None:
    program = "import sys; sys.modules['nicegui'] = None; from ottla.cli import main; main(['ui'])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (
        2,
        "ottla: the page needs the package nicegui: pip install 'ottla[ui]'\n",
    )


def test_a_port_that_there_cannot_be_is_refused() -> None:
    refused = CliRunner().invoke(main, ["ui", "--port", "65536"])
    assert refused.exit_code == 2
    assert "65536 is not in the range 0<=x<=65535" in refused.output


def test_nodes_are_shown_where_there_are_several() -> None:
    first, second = {"node": 1, "leads": 2, "state": "running"}, {"node": 2, "leads": 0, "state": "stopped"}
    assert words.nodes([first, second]) == "2 nodes: 1 leads 2, 2 is stopped"
    assert words.nodes([first]) == ""


@pytest.mark.parametrize(
    ("text", "offset"),
    [("42", 42), ("-10", -10), ("0", 0), ("--5", None), ("-", None), ("4 2", None), ("", None), ("9" * 20, None)],
)
def test_offsets_that_are_typed(text: str, offset: int | None) -> None:
    assert offset_of(text) == offset
