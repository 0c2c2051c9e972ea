"""What tests in Python begin in a lab, and what ends with a `with` statement."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from .lab_client import LabRefused, LabUnreachable

NOT_FOUND = 404


class Ending:
    """As a context manager it ends at the end, if it has not ended before: by its duration, by a request, or with the
    broker. So the error of a test is not hidden by one of its end. A subclass says how (`_end`).
    """

    def _end(self) -> object:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._end()
        except LabUnreachable:
            pass  # the broker has ended
        except LabRefused as refused:
            if refused.status != NOT_FOUND:
                raise
