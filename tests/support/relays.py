"""Relays on loopback between processes that each think to reach the others by name: the network between any two of them
can be cut. What is sent meanwhile is lost, and nothing is closed, as on a network that loses packets; connections of
before end when the processes reach each other again, so that nothing arrives late.

Each process resolves names by a hosts file of its own, in which each other process has the address of the relay for
this way: 127.0.1.2 is from number 1 to number 2. So a relay knows who calls. A process is below number 255, and
listens at 127.0.0.1; the relays to it have the same ports.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType

CHUNK_BYTES = 1 << 16


def name_of(number: int) -> str:
    """The host that others know a process by."""
    return f"node{number}.test"


def write_hosts(path: Path, own: int, numbers: Iterable[int]) -> None:
    """Writes the hosts file of a process (`-Djdk.net.hosts.file`), which reaches itself without a relay."""
    lines = [
        "127.0.0.1 localhost",
        *(f"127.0.0.1 {name_of(n)}" if n == own else f"127.0.{own}.{n} {name_of(n)}" for n in numbers),
    ]
    path.write_text("".join(f"{line}\n" for line in lines))


class Relays:
    """Relays between processes. A context manager. `ports`: those of each process that the others reach."""

    def __init__(self, ports: Mapping[int, Sequence[int]]) -> None:
        self._ports = ports
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="relays", daemon=True)
        self._ways: dict[frozenset[int], _Way] = {}
        self._servers: list[asyncio.Server] = []

    def __enter__(self) -> Relays:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def part(self, sides: Sequence[Collection[int]]) -> None:
        """Lets processes reach those on their own side alone."""
        side_of = {number: at for at, side in enumerate(sides) for number in side}
        cut = {pair for pair in self._ways if len({side_of[number] for number in pair}) > 1}
        asyncio.run_coroutine_threadsafe(self._cut(cut), self._loop).result()

    def join(self) -> None:
        """Lets all processes reach each other."""
        asyncio.run_coroutine_threadsafe(self._cut(set()), self._loop).result()

    async def _cut(self, cut: Collection[frozenset[int]]) -> None:
        for pair, way in self._ways.items():
            if pair in cut:
                way.close()
            else:
                way.open()

    async def _listen(self) -> None:
        for target, ports in self._ports.items():
            for source in self._ports:
                if source != target:
                    way = self._ways.setdefault(frozenset((source, target)), _Way())
                    for port in ports:
                        relay, host = partial(way.relay, port), f"127.0.{source}.{target}"
                        self._servers.append(await asyncio.start_server(relay, host, port))

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


class _Way:
    """Between two processes."""

    def __init__(self) -> None:
        self._is_open = asyncio.Event()
        self._is_open.set()
        self._late: set[asyncio.StreamWriter] = set()  # of connections on which something may have been lost
        self._all: set[asyncio.StreamWriter] = set()

    def close(self) -> None:
        self._is_open.clear()
        self._late |= self._all

    def open(self) -> None:
        for writer in self._late:
            writer.transport.abort()
        self._late.clear()
        self._is_open.set()

    async def relay(self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = [writer]
        try:
            if not self._is_open.is_set():
                await self._is_open.wait()
                return writer.transport.abort()
            there, to_there = await asyncio.open_connection("127.0.0.1", port)
            ends.append(to_there)
            self._all.update(ends)
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pump(reader, to_there))
                both.create_task(self._pump(there, writer))
        except (OSError, asyncio.CancelledError):  # the latter at the end, and it would be logged
            writer.transport.abort()
        finally:
            self._all.difference_update(ends)
            for end in ends:
                end.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Passes on what comes, and the end."""
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK_BYTES):
                await self._is_open.wait()
                writer.write(data)
                await writer.drain()
        await self._is_open.wait()
        writer.close()
