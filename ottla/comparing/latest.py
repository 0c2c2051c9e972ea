"""What is kept of clients' ids while two brokers are compared, for hours: bounded, because clients choose the ids."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Latest(dict[K, V]):
    """A dict that forgets what was set least recently when it has more than `count_max`. Set items one by one."""

    def __init__(self, count_max: int) -> None:
        super().__init__()
        self._count_max = count_max

    def __setitem__(self, key: K, value: V) -> None:
        self.pop(key, None)
        super().__setitem__(key, value)
        if len(self) > self._count_max:
            del self[next(iter(self))]
