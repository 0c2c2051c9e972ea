"""Fixtures for pytest: `ottla_broker`, one broker for the session, `ottla_topic`, a fresh topic for each test,
`ottla_lab`, the broker's HTTP API, whose changes end with the test, and `ottla_clock`, the broker's clock, which stands
still during the test, `ottla_trace`, what the broker and its clients say to each other during the test, which is
shown when the test fails, and `ottla_verdict`, which rules of the protocol they kept. `ottla_cluster(nodes=3)` starts a
broker of several nodes for one test. With pytest-xdist each worker has its own broker.

Keys for the broker's configuration go into the ini option `ottla_settings`, one `key=value` a line.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

import pytest

from .clock import Clock
from .lab_client import Lab, LabRefused, LabUnreachable
from .testing import Broker

if TYPE_CHECKING:
    from .lab_cluster import Cluster
    from .lab_verdict import RunningVerdict
    from .traces.running import RunningTrace


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "ottla_examination(name, seed=0): the examination of the fixture ottla_verdict")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "ottla_settings", "configuration of the ottla broker, one key=value a line", type="linelist", default=[]
    )


@pytest.fixture(scope="session")
def ottla_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A broker process on a free loopback port, ready to serve; stopped after the session."""
    settings = dict(line.partition("=")[::2] for line in request.config.getini("ottla_settings"))
    with Broker({key.strip(): value.strip() for key, value in settings.items()}) as broker:
        request.config.stash[_BROKER] = broker
        yield broker


@pytest.fixture
def ottla_topic(ottla_broker: Broker) -> str:
    """The name of a topic that no other test uses; the broker creates it when a client first asks for it."""
    return f"topic-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def ottla_lab(ottla_broker: Broker) -> Iterator[Lab]:
    """The HTTP API of the broker. What it changes (high watermarks, faults, holds, the clock) ends with the test."""
    lab = ottla_broker.lab
    yield lab
    if ottla_broker.running:
        lab.reset()


@pytest.fixture
def ottla_clock(ottla_broker: Broker) -> Iterator[Clock]:
    """The broker's clock, which stands still; `ottla_clock.advance("45s")` lets time pass. After the test time passes
    as the machine's again, from where it is.
    """
    clock = ottla_broker.clock
    clock.freeze()
    yield clock
    if ottla_broker.running:
        clock.system()


@pytest.fixture
def ottla_trace(ottla_broker: Broker, request: pytest.FixtureRequest) -> Iterator[RunningTrace]:
    """A trace of the test: `ottla_trace.events`, `ottla_trace.lines()`. Its last events are in the report of a test
    that fails.
    """
    trace = request.node.stash[_TRACE] = ottla_broker.lab.trace()
    yield trace
    if ottla_broker.running:
        trace.stop()


@pytest.fixture
def ottla_verdict(ottla_broker: Broker, request: pytest.FixtureRequest) -> Iterator[RunningVerdict]:
    """The verdict on the clients of the test: `ottla_verdict.check()`. With the mark `ottla_examination("idempotence")`
    it is that examination, and faults provoke what does not occur by itself; `seed=` is one of its arguments.
    """
    lab, mark = ottla_broker.lab, request.node.get_closest_marker("ottla_examination")
    with lab.verdict() if mark is None else _examination(lab, *mark.args, **mark.kwargs) as verdict:
        yield verdict


def _examination(lab: Lab, name: str = "", seed: int = 0) -> RunningVerdict:
    """Begins what a mark `ottla_examination` asks for; the broker refuses a wrong name, and lists the right ones."""
    return lab.verdict(name, provokes=True, seed=seed)


@pytest.fixture
def ottla_cluster() -> Iterator[Callable[..., Cluster]]:
    """Starts clusters that end with the test: `ottla_cluster(nodes=3, settings={...})`; then
    `cluster.node(2).stop()`, `cluster.partition("orders").leader`.
    """
    from .lab_cluster import Cluster

    with ExitStack() as clusters:
        yield lambda nodes=3, settings=None: clusters.enter_context(Cluster(nodes, settings))


EVENTS_SHOWN = 60
_TRACE = pytest.StashKey["RunningTrace"]()
_BROKER = pytest.StashKey[Broker]()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[Any]:
    """Shows the broker's log, and the trace if there is one, with a test that failed."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    broker = item.config.stash.get(_BROKER, None)
    if report.failed and broker is not None and "ottla_broker" in getattr(item, "fixturenames", ()):
        if broker.log:
            report.sections.append(("ottla broker", broker.log))
        trace = item.stash.get(_TRACE, None)
        if trace is not None and broker.running:
            with suppress(LabRefused, LabUnreachable):  # the test has ended it
                report.sections.append(("ottla trace", "\n".join(trace.lines(EVENTS_SHOWN))))
