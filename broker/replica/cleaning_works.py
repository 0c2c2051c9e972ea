"""Where a compaction does its work: in a thread, or, if it is large, in a worker process beside the loop."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from ...storage.cleaning import Job
from ...storage.cleaning_pieces import Compaction, Piece, close_in_worker, go_on_in_worker
from ...storage.files import Files

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor


class InThread:
    """The work of a small compaction."""

    is_lost = False

    def __init__(self, files: Files, job: Job) -> None:
        self._compaction = Compaction(files, job)

    def go_on(self, bytes_max: float) -> Piece:
        """Raises OSError."""
        return self._compaction.go_on(bytes_max)

    def close(self) -> None:
        """Closes the files."""
        self._compaction.close()


class Workers:
    """A worker process, from when it is needed first. After `stop` there is another one."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._numbers = count()

    def work(self, job: Job) -> InWorker:
        if self._pool is None:
            import multiprocessing
            from concurrent.futures import ProcessPoolExecutor

            self._pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
        return InWorker(self, self._pool, next(self._numbers), job)

    def has(self, pool: ProcessPoolExecutor) -> bool:
        return self._pool is pool

    def stop(self) -> None:
        """Ends the worker after what it does now. The works that it has begun are lost."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None


class InWorker:
    """The work of a compaction in a worker process."""

    def __init__(self, workers: Workers, pool: ProcessPoolExecutor, number: int, job: Job) -> None:
        self._workers = workers
        self._pool = pool
        self._number = number
        self._job: Job | None = job  # until the worker has it

    @property
    def is_lost(self) -> bool:
        """Whether the worker has ended."""
        return not self._workers.has(self._pool)

    def go_on(self, bytes_max: float) -> Piece:
        """Waits for the worker. Raises OSError."""
        job, self._job = self._job, None
        return self._pool.submit(go_on_in_worker, self._number, job, bytes_max).result()

    def close(self) -> None:
        """Lets the worker close the files, and waits for that."""
        if not self.is_lost:
            self._pool.submit(close_in_worker, self._number).result()
