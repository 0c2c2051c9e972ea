"""The jobs that make a log durable. They run in threads, and know nothing of the log but names of files."""

from __future__ import annotations

from typing import NamedTuple

from .files import Files, time_ns


class FlushJob(NamedTuple):
    """Files and names to sync; running it does not access the log."""

    files: Files
    end_offset: int
    paths: list[str]
    directories: list[str]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to sync."""
        return not self.paths and not self.directories

    @property
    def of_log(self) -> FlushJob:
        """The job without `shared`."""
        return self._replace(directories=self.directories[:1])

    @property
    def shared(self) -> list[str]:
        """The directory in which the log's own is, if that has a new name."""
        return self.directories[1:]

    def run(self) -> int:
        """Syncs; returns the duration in nanoseconds. Ignores files that were removed meanwhile. Raises OSError."""
        began = time_ns()
        for path in self.paths:
            try:
                handle = self.files.open(path)
            except FileNotFoundError:
                continue
            try:
                handle.sync()
            finally:
                handle.close()
        for directory in self.directories:
            self.files.sync_directory(directory)
        return time_ns() - began


class FlushJobs:
    """The jobs of a log that have not been reported as done. Each job repeats the work of those before it."""

    def __init__(self) -> None:
        self._all: list[FlushJob] = []

    @property
    def paths(self) -> list[str]:
        return [path for job in self._all for path in job.paths]

    @property
    def sync_directories(self) -> bool:
        return any(job.directories for job in self._all)

    def add(self, job: FlushJob) -> None:
        self._all.append(job)

    def done(self, job: FlushJob) -> bool:
        """Forgets a job that has run, and the earlier ones. Returns False if the job does not count: a later one has
        run, or the directory was renamed, after which the job may not have found the files.
        """
        for number, one in enumerate(self._all):
            if one is job:
                del self._all[: number + 1]
                return True
        return False

    def moved(self, old: str, new: str) -> None:
        """The directory was renamed: the work of these jobs is that of the next one."""

        def renamed(path: str) -> str:
            return new + path.removeprefix(old) if path.startswith(f"{old}/") else path

        self._all = [job._replace(paths=[renamed(path) for path in job.paths]) for job in self._all]
