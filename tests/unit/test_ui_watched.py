"""The trace of a page that is begun, ended and left while the broker is asked."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ottla.lab_client import LabRefused
from ottla.ui.watched import WatchedTrace


class Broker:
    """A link to a broker, whose answers to requests for a trace come when the test lets them. `traces`: those that it
    has.
    """

    def __init__(self) -> None:
        self.traces: list[int] = []
        self.begun = 0
        self.may_answer = asyncio.Event()

    async def post(self, path: str, **body: object) -> Any:
        self.begun += 1
        self.traces.append(self.begun)
        number = self.begun
        await self.may_answer.wait()
        return {"number": number}

    async def delete(self, path: str) -> None:
        self.traces.remove(int(path.rpartition("/")[2]))

    async def get(self, path: str, **query: object) -> Any:
        number = int(path.split("/")[1])
        await asyncio.sleep(0)
        if number not in self.traces:
            raise LabRefused(404, "there is no such trace")
        return {"events": [{"of": number, **query}], "next": 7}


def watched() -> tuple[WatchedTrace, Broker]:
    broker: Any = Broker()
    return WatchedTrace(broker), broker


async def events_of(trace: WatchedTrace) -> list[dict[str, object]]:
    found = await trace.events()
    assert found is not None
    return list(found["events"])


def test_a_button_that_is_pressed_twice_leaves_no_trace() -> None:
    async def pressed() -> None:
        trace, broker = watched()
        both = asyncio.gather(trace.turn({}), trace.turn({}))
        await asyncio.sleep(0)
        broker.may_answer.set()
        await both
        assert (broker.begun, broker.traces, trace.is_there) == (1, [], False)

    asyncio.run(pressed())


def test_a_page_that_is_left_while_its_trace_begins_leaves_none() -> None:
    async def left() -> None:
        trace, broker = watched()
        both = asyncio.gather(trace.turn({}), trace.end())
        await asyncio.sleep(0)
        assert broker.traces == [1]
        broker.may_answer.set()
        await both
        assert (broker.traces, trace.is_there) == ([], False)

    asyncio.run(left())


def test_events_are_asked_for_after_those_that_were_taken_and_only_of_the_trace_that_is_watched() -> None:
    async def read() -> None:
        trace, broker = watched()
        broker.may_answer.set()
        assert await trace.events() is None
        await trace.turn({})
        found = await trace.events()
        assert found is not None
        trace.took(found)
        assert await events_of(trace) == [{"of": 1, "after": 7}]
        late = asyncio.create_task(trace.events())
        await asyncio.sleep(0)
        await trace.turn({})
        await trace.turn({})
        with pytest.raises(LabRefused):
            await late
        assert trace.is_there, "another one is watched now"
        assert await events_of(trace) == [{"of": 2, "after": 0}]

    asyncio.run(read())


def test_a_trace_that_the_broker_has_no_more_is_over() -> None:
    async def reset() -> None:
        trace, broker = watched()
        broker.may_answer.set()
        await trace.turn({})
        broker.traces.clear()
        with pytest.raises(LabRefused):
            await trace.events()
        assert not trace.is_there
        await trace.end()

    asyncio.run(reset())
