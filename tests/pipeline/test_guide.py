"""The worked example of a job in CONTRIBUTING.md does what it says."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ..support.docs import changed, steps
from .conftest import Told

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow


def module(name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module that is in no file of the repository, importable until the test ends."""
    made = ModuleType(name)
    made.__package__ = name.rpartition(".")[0]
    monkeypatch.setitem(sys.modules, name, made)
    exec(compile(text, name, "exec"), made.__dict__)
    return made


def test_the_job_of_the_guide(spark: Any, told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text().partition("### Add a job of the pipeline")[2]
    job, command, test = [step for step in steps(guide) if step.file]
    assert changed((ROOT / command.file).read_text(), command.text).count("clients") == 1
    module("ottla.pipeline.jobs.clients", job.text, monkeypatch)
    of_guide = module(f"{__package__}.test_clients", test.text, monkeypatch)
    of_guide.test_it_counts_the_batches_of_each_producer(spark, told)
