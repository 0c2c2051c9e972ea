"""The words of `ottla serve` that are read without click."""

from __future__ import annotations

import pytest

from ottla.cli import serve
from ottla.serving import Options, plain_options

PLAIN = (
    "",
    "log.dirs=data",
    "log.dirs=data --announce listeners=PLAINTEXT://:0",
    "--announce -v",
    "--verbose --announce",
    "-c server.properties",
    "--config one.properties a=b -c two.properties",
    "a=b not-a-setting",
)
NOT_PLAIN = ("--lab", "--lab=1 a=b", "--seed 3", "-h", "--help", "-c", "-c -v", "--config=a", "-vc a", "-- a=b", "-")


def clicks(words: list[str]) -> Options:
    """What click reads."""
    return Options(**serve.make_context("serve", list(words)).params)


@pytest.mark.parametrize("line", PLAIN)
def test_plain_words_are_read_as_click_reads_them(line: str) -> None:
    words = line.split()
    assert plain_options(words) == clicks(words)


def test_an_empty_word_is_a_setting_of_both() -> None:
    assert plain_options(["", "a=b"]) == clicks(["", "a=b"])


@pytest.mark.parametrize("line", NOT_PLAIN)
def test_other_words_are_left_to_click(line: str) -> None:
    assert plain_options(line.split()) is None
