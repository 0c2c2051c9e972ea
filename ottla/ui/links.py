"""The brokers of the page, and requests to them that do not stop the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from urllib.parse import urlsplit

from ..lab_client import Lab, Reply

THREADS_MAX = 8  # requests to one broker at the same time
TIMEOUT_S = 10.0


class Link:
    """A broker. `number`: in addresses of pages."""

    def __init__(self, number: int, lab: Lab) -> None:
        self.number = number
        self.lab = lab.with_timeout(TIMEOUT_S)
        self.name = urlsplit(lab.url).netloc or lab.url
        self._threads = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix=f"broker-{number}")

    @property
    def url(self) -> str:
        return self.lab.url

    def at(self, path: str) -> str:
        """The address of a page of this broker."""
        return f"/b/{self.number}/{path}"

    async def get(self, path: str, /, **query: object) -> Reply:
        """Raises LabRefused or LabUnreachable, as the others do."""
        return await self._call("GET", path, None, query)

    async def post(self, path: str, /, **body: object) -> Reply:
        return await self._call("POST", path, body)

    async def put(self, path: str, /, **body: object) -> Reply:
        return await self._call("PUT", path, body)

    async def delete(self, path: str, /, **query: object) -> Reply:
        return await self._call("DELETE", path, None, query)

    async def _call(
        self, method: str, path: str, body: Mapping[str, object] | None, query: Mapping[str, object] | None = None
    ) -> Reply:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(self.lab.call, method, path, body, query))

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
