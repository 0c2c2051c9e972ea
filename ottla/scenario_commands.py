"""`ottla lab run` and `ottla lab schema`: scenario files."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from .lab_client import Lab
from .lab_output import JSON, LAB, errors_as_exit_codes
from .protocol.text import printable

if TYPE_CHECKING:
    from .broker.lab.scenario.runner import Report, StepReport

EXIT_FAILED, EXIT_INVALID = 1, 2


@click.command()
@LAB
@JSON
@click.argument("files", nargs=-1, required=True, type=click.Path())
def run(url: str, as_json: bool, files: tuple[str, ...]) -> None:
    """Run the scenario FILES on a running broker, one after the other, and print a line for each step.

    Exit codes: 0 all passed, 1 a step failed, 2 a file is invalid, 3 no broker answers.
    """
    from .broker.config.config import ScenarioError
    from .broker.lab.scenario.file import read

    try:
        chosen = [read(file) for file in files]  # before the first step, so that nothing is half done
    except ScenarioError as error:
        click.echo(printable(f"ottla: {error}"), err=True)
        sys.exit(EXIT_INVALID)
    from . import scenarios

    reports = []
    with errors_as_exit_codes():
        for one in chosen:
            reports.append(scenarios.run(Lab(url), one, (lambda _: None) if as_json else _print))
            if not as_json:
                click.echo("\n".join(_summary(reports[-1])))
    if as_json:
        click.echo(json.dumps(reports if len(files) > 1 else reports[0], indent=2))
    sys.exit(0 if all(one["passed"] for one in reports) else EXIT_FAILED)


@click.command()
def schema() -> None:
    """Print the JSON schema of scenario files, for editors and validators."""
    from .broker.lab.scenario.schema import schema as computed

    click.echo(json.dumps(computed(), indent=2))


def _print(step: StepReport) -> None:
    outcome = "ok    " if step["problem"] is None else "FAILED"
    click.echo(printable(f"{outcome} {step['number']:3}  {step['step']}  ({step['ms']:.0f} ms)"))
    if step["problem"] is not None:
        click.echo(printable(f"       {step['problem']}"))


def _summary(report: Report) -> Iterator[str]:
    passed = sum(one["problem"] is None for one in report["steps"])
    failed = len(report["steps"]) - passed
    yield printable(f"{report['name']}: {passed} passed, {failed} failed, {report['not_run']} not run")
