"""The arguments of `ottla serve` that are read without click."""

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


def options_by_click(arguments: list[str]) -> Options:
    return Options(**serve.make_context("serve", list(arguments)).params)


@pytest.mark.parametrize("line", PLAIN)
def test_plain_arguments_are_read_as_click_reads_them(line: str) -> None:
    arguments = line.split()
    assert plain_options(arguments) == options_by_click(arguments)


@pytest.mark.parametrize("arguments", [["", "a=b"], ["-c", "", "a=b"]])
def test_an_empty_argument_is_read_as_click_reads_it(arguments: list[str]) -> None:
    assert plain_options(arguments) == options_by_click(arguments)


@pytest.mark.parametrize("line", NOT_PLAIN)
def test_other_arguments_are_left_to_click(line: str) -> None:
    assert plain_options(line.split()) is None
