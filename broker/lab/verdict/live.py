"""The verdict on the clients of a running broker: what they do is recorded as for a trace, and a program beside the
broker examines it (`examining.py`).

A question is a block in the stream of records, so that its answer includes all that was recorded before.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from ....verdict.examiner import Examiner
from ....verdict.rule import Examination
from ...broker import Broker
from ...later import Later
from ...machine import MachineTime
from ..routes import Refused
from ..traces.client import Wanted
from ..traces.recorder import Recorder
from ..traces.stream import SIZE, Stream
from .examining import question

MODULE: Final = f"{__package__}.examining"
LOOK_MS: Final = 2  # between two looks for an answer
ENDED: Final = "the program that examines the clients has ended"


class Answer(NamedTuple):
    """What the program knows. `unexamined`: requests of clients beyond its limit; `clients`: the JSON of their
    reports.
    """

    unexamined: int
    clients: Sequence[bytes]


class Live(Recorder):
    """Examines the clients of a broker. `events`: how many were recorded. Raises OSError if the program cannot be
    started.
    """

    order = 10

    def __init__(self, examination: Examination | None, broker: Broker, machine: MachineTime) -> None:
        super().__init__(Wanted(Examiner(examination).keys, None, has_raw=False), broker, machine)
        self.examination = examination
        program = machine.start_program(MODULE, [examination or ""], [], answers=True)
        self._stream = Stream(program, machine, "the program that examines the clients")
        self._answers = Answers()
        self._asked: deque[Later[Answer]] = deque()
        self._is_looking = False

    @property
    def events(self) -> int:
        return self.recorded + self._block.count

    @property
    def has_ended(self) -> bool:
        """Whether its program has."""
        return self._stream.ended.done

    def _has_room(self) -> bool:
        return self._stream.has_room()

    def _made(self, block: bytes, count: int, has_room: bool, is_large: bool) -> None:
        if has_room:
            self._stream.put(block)

    def ask(self, client_id: str | None = None) -> Later[Answer]:
        """Returns what is known of all clients, or of those with a client id. Fails with Refused if the program has
        ended.
        """
        self.flush()
        later: Later[Answer] = Later()
        self._asked.append(later)
        self._stream.put(question(client_id))
        if not self._is_looking:
            self._look()
        return later

    def _look(self) -> None:
        data = self._stream.program.read()
        while data:
            for answer in self._answers.add(data):
                self._asked.popleft().finish(answer)
            data = self._stream.program.read()
        if data is None:
            while self._asked:
                self._asked.popleft().fail(Refused(503, ENDED))
        self._is_looking = bool(self._asked)
        if self._is_looking:
            self._machine.after(LOOK_MS, self._look)

    def end(self) -> None:
        """Nothing more is recorded; questions are answered still."""
        self.flush()
        self._stream.end()
        self._stream.ended.when_done(lambda _: self._look())

    def close(self) -> None:
        """Ends the program at once. Call it when the loop does not serve any more."""
        if not self._stream.ended.done:
            self._stream.program.kill()


class Answers:
    """Puts the bytes that the program sends together: the number of the clients with more, and each client."""

    def __init__(self) -> None:
        self._stream = bytearray()
        self._about: tuple[int, int] | None = None
        self._clients: list[bytes] = []

    def add(self, data: bytes) -> list[Answer]:
        """Adds bytes; returns the answers that are complete."""
        stream, made, done = self._stream, [], 0
        stream += data
        while len(stream) - done >= SIZE.size:
            (size,) = SIZE.unpack_from(stream, done)
            if len(stream) - done - SIZE.size < size:
                break
            done += SIZE.size + size
            part = bytes(stream[done - size : done])
            if self._about is None:
                self._about = tuple(json.loads(part))
            else:
                self._clients.append(part)
            unexamined, count = self._about
            if len(self._clients) == count:
                made.append(Answer(unexamined, self._clients))
                self._about, self._clients = None, []
        del stream[:done]
        return made
