"""Runs all tests (`make test`), or the quick ones (`make quick`): several runs of pytest beside each other, the lanes.

Some lanes begin at once, and each of the others when one has ended, so that none is alone at the end. Each lane has its
own log, cache directory and report. The log of the last of those that begin at once is shown as it grows, the others'
at the end. Tests that mostly wait for clients share the machine; those that only compute give way to them (`nice`).

A test that talks with programs of others in real time can fail because the other lanes keep the machine busy. Such
tests are run a second time, alone, when all lanes have ended, if they are few, whatever else has failed: what is said
at the end is what is broken. A test that fails alone fails the run. One that passes alone is shown at the end, by name
and with its first failure: it has a race, in the test or in the broker. No other failure gets a second run: neither
that of a test which does not depend on time, nor one of a whole lane (a crash, a time-out, a module that cannot be
imported, a file that Kafka's DumpLogSegments does not like).
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as Xml
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from .support import transcripts

COMPUTING = 5  # niceness; it gets a third of what the others get, and bounds no time


@dataclass(frozen=True)
class Plan:
    """What a lane runs: arguments of pytest."""

    arguments: Sequence[str]
    niceness: int = 0


def ignoring(paths: Iterable[str]) -> list[str]:
    return [f"--ignore={path}" for path in paths]


def modules(folder: str, *names: str) -> list[str]:
    return [f"tests/{folder}/test_{name}.py" for name in names]


EXAMINED = modules("clients", "examinations", "verdict")
ERRORS = modules("clients", "error_codes", "faults", "telemetry_errors", "streams_errors", "damaged_replies")
LASTING = modules("clients", "compared", "gssapi", "history")
GROUPS = modules("clients", "examples", "group_scenarios", "groups", "share", "streams", "transactions")
LARGE = modules("process", "docs", "packaging")
ATTACKS = modules("process", "attack")
COMPARED = modules("process", "compare", "compare_groups", "compare_nodes", "replay", "replay_groups")
STORIES = ["tests/differential"]  # which play what Kafka said
WITH_KAFKA = ["tests/oracle"]
IN_STEPS = ["tests/unit", "tests/world"]
SIMULATED = ["tests/sim"]
NOT_SLOW = "not slow and not oracle and not go and not node"
QUICK = ["-q", "-m", f"{NOT_SLOW} and not long"]
NAMED = [*LARGE, *ATTACKS, *COMPARED, *STORIES, *WITH_KAFKA, *IN_STEPS, *SIMULATED]
AT_ONCE = 6  # more would keep both processors so busy that clients run into their time-outs
LANES = {  # what takes long or gives way begins first
    "computing": Plan(IN_STEPS, COMPUTING),
    "simulating": Plan(SIMULATED, COMPUTING),
    "oracle": Plan(WITH_KAFKA),
    "clients": Plan(["tests/clients", *ignoring([*EXAMINED, *ERRORS, *LASTING, *GROUPS])]),
    "large": Plan(LARGE),
    "errors": Plan(ERRORS),
    "lasting": Plan(LASTING),
    "others": Plan(ignoring(["tests/clients", "tests/pipeline", *NAMED])),
    "pipeline": Plan(["tests/pipeline"]),
    "attacks": Plan([*ATTACKS, *STORIES]),
    "examined": Plan(EXAMINED),
    "groups": Plan(GROUPS),
    "compared": Plan(COMPARED),
}
QUICK_LANES = {  # every test of the folders that are left out is slow: they are not even imported
    "world": Plan([*QUICK, "tests/world"]),
    "others": Plan([*QUICK, *ignoring(["tests/world", "tests/clients", *STORIES, *WITH_KAFKA])]),
}
WITH_FOREIGN_PROGRAMS = ("tests/clients/", "tests/oracle/", "tests/pipeline/", "tests/process/")
ASKS_KAFKA_WHEN_LIVE = "tests/differential/"
SECOND_RUNS_MAX, SECOND_MODULES_MAX = 24, 9  # a fixture of a module that fails is a failure of each of its tests
LANE_SECONDS_MAX = 70 * 60  # a busy or slow machine takes twice the time
END_SECONDS = 20  # how long a lane that is interrupted has to stop its brokers
STACK_SECONDS = 5  # how long a lane that took too long has to write its stacks
LOOK_SECONDS = 0.2
SOME_FAILED = 1  # pytest's exit code
LAST_CHARACTERS = 6000  # of the log of a lane with which something is wrong, and of stacks behind them
# Pytest, and then what it and its processes needed of processors, which says more than the time beside other lanes.
# What clients that tests left do at the end of a process may wait for brokers that are gone.
PYTEST = """\
import os, sys, pytest
code = pytest.main(sys.argv[1:])
print(f"{sum(os.times()[:4]):.0f} s of processors", flush=True)
os._exit(code)
"""


@dataclass(frozen=True)
class Failure:
    """A test that failed, or whose fixtures did. `test` is its node id."""

    test: str
    text: str


@dataclass(frozen=True)
class Outcome:
    """How a lane ended. `wrong` says what went wrong with the lane as a whole, or is empty."""

    lane: str
    failures: list[Failure]
    passed: frozenset[str] = frozenset()
    wrong: str = ""

    @property
    def is_good(self) -> bool:
        return not self.failures and not self.wrong


class Lane:
    """One run of pytest, in a process group of its own."""

    def __init__(self, name: str, plan: Plan, directory: Path) -> None:
        self.name = name
        self.log = directory / f"{name}.log"
        self.report = directory / f"{name}.xml"
        self.report.unlink(missing_ok=True)
        report = [f"--junit-xml={self.report}", "-o", "junit_family=xunit1", "--durations=10"]
        own = [*report, "-o", f"cache_dir={directory / name}"]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                ["nice", "-n", str(plan.niceness), sys.executable, "-c", PYTEST, *own, *plan.arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.shown = 0
        self.too_long = False

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def show(self) -> None:
        """Prints what the log has got since the last time."""
        with self.log.open("rb") as log:
            log.seek(self.shown)
            text = log.read()
        self.shown += len(text)
        sys.stdout.write(text.decode(errors="replace"))
        sys.stdout.flush()

    def signal(self, number: int) -> None:
        """Sends a signal to pytest and to what its tests started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def abort(self) -> None:
        """Ends a lane that took too long; pytest's fault handler writes the stacks of all threads."""
        if not self.is_running:
            return
        self.too_long = True
        self.process.send_signal(signal.SIGABRT)
        try:
            self.process.wait(STACK_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def outcome(self) -> Outcome:
        """Returns how the lane ended. Call this after it has."""
        code = self.process.wait()
        self.signal(signal.SIGKILL)  # what a crashed run left behind
        if self.too_long:
            return Outcome(self.name, [], wrong=f"took longer than {LANE_SECONDS_MAX} s")
        if not self.report.exists():
            return Outcome(self.name, [], wrong=f"ended with code {code} before it was through")
        failures, passed = read(self.report)
        explained = code == (SOME_FAILED if failures else 0)
        return Outcome(self.name, failures, passed, "" if explained else f"ended with code {code}")


def read(report: Path) -> tuple[list[Failure], frozenset[str]]:
    """Returns the failures of pytest's report (one for each test), and the tests that passed."""
    failures: dict[str, Failure] = {}
    others: set[str] = set()
    for case in Xml.parse(report).iter("testcase"):
        # a module that cannot be imported is a case without a class name
        test = f"{case.get('file')}::{case.get('name')}" if case.get("classname") else str(case.get("name"))
        for element in [*case.iter("failure"), *case.iter("error")]:
            failures.setdefault(test, Failure(test, element.text or ""))
        if case.find("skipped") is None:
            others.add(test)
    return list(failures.values()), frozenset(others - failures.keys())


def depends_on_time(test: str) -> bool:
    live = (ASKS_KAFKA_WHEN_LIVE,) if transcripts.mode() != "recorded" else ()
    return test.startswith((*WITH_FOREIGN_PROGRAMS, *live))


def for_second_run(outcomes: Sequence[Outcome]) -> list[Failure]:
    """Returns the failures to try again: none where so many depend on time that something else must be wrong."""
    found = [failure for one in outcomes for failure in one.failures if depends_on_time(failure.test)]
    modules = {failure.test.partition("::")[0] for failure in found}
    return found if len(found) <= SECOND_RUNS_MAX and len(modules) <= SECOND_MODULES_MAX else []


def run(lanes: Mapping[str, Plan], directory: Path) -> list[Outcome]:
    """Runs lanes, AT_ONCE of them beside each other; shows one's log as it grows, then the others'."""
    started: list[Lane] = []
    waiting = list(lanes.items())
    ends = time.monotonic() + LANE_SECONDS_MAX
    try:
        while waiting or any(lane.is_running for lane in started):
            while waiting and sum(lane.is_running for lane in started) < AT_ONCE:
                started.append(Lane(*waiting.pop(0), directory))
            time.sleep(LOOK_SECONDS)
            followed = started[:AT_ONCE][-1]
            followed.show()
            if time.monotonic() > ends:
                for lane in started:
                    lane.abort()
    except BaseException:
        interrupt(started)
        raise
    outcomes = [lane.outcome() for lane in started]
    for lane in [followed, *started]:
        lane.show()
    return outcomes


def interrupt(lanes: Sequence[Lane]) -> None:
    """Ends lanes: first so that they stop their brokers, then for certain."""
    for lane in lanes:
        lane.signal(signal.SIGINT)
    ends = time.monotonic() + END_SECONDS
    for lane in lanes:
        with suppress(subprocess.TimeoutExpired):
            lane.process.wait(max(0, ends - time.monotonic()))
        lane.signal(signal.SIGKILL)
        lane.process.wait()


def last_of(log: str) -> str:
    """Returns the end of a log. Of stacks at its end only the first are shown, behind the test that they are of."""
    before, *stacks = re.split(r"^(?=Timeout \(|Fatal Python error)", log, maxsplit=1, flags=re.MULTILINE)
    return before[-LAST_CHARACTERS:] + "".join(stacks)[:LAST_CHARACTERS]


def heading(words: str) -> None:
    print(f"\n{'=' * 120}\n{words}\n{'=' * 120}")


def run_all(lanes: Mapping[str, Plan], directory: Path) -> bool:
    """Runs all lanes, and once more, alone, what may be; says at the end what failed. Returns whether all is well."""
    directory.mkdir(parents=True, exist_ok=True)
    outcomes = run(lanes, directory)
    first = for_second_run(outcomes)
    if first:
        heading(f"{len(first)} tests that depend on time failed beside the other lanes. Their second run, alone:")
        (alone,) = run({"alone": Plan([one.test for one in first])}, directory)
        report_races([one for one in first if one.test in alone.passed])
        missing = {one.test for one in first} - alone.passed - {one.test for one in alone.failures}
        outcomes = [replace(one, failures=[each for each in one.failures if each not in first]) for one in outcomes]
        outcomes += [alone, Outcome("alone", [Failure(one, "") for one in sorted(missing)])]
    for outcome in outcomes:
        if outcome.wrong:
            heading(f"The end of the lane {outcome.lane}:")
            print(last_of((directory / f"{outcome.lane}.log").read_text(errors="replace")))
    heading("All tests passed." if all(one.is_good for one in outcomes) else "FAILED:")
    for outcome in outcomes:
        if outcome.wrong:
            print(f"the lane {outcome.lane} {outcome.wrong}")
        for failure in outcome.failures:
            print(failure.test)
    return all(one.is_good for one in outcomes)


def report_races(passed: Sequence[Failure]) -> None:
    if passed:
        heading(f"{len(passed)} tests FAILED BESIDE THE OTHER LANES and passed alone. They have a race; mend them:")
    for one in passed:
        print(f"\n{one.test}\n\n{one.text}")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(0 if run_all(QUICK_LANES if "quick" in sys.argv[2:] else LANES, Path(sys.argv[1])) else 1)
