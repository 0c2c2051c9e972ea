"""Arrays of messages whose elements are encoded when they are appended."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

from .buffers import Parts


class Encoded:
    """The elements of an array, already encoded in one version of their message:
    for arrays whose objects would take too much memory.

    `write` appends an element to the bytes, and records that are no bytes to the parts (`wire.Records`); `parse` reads
    an element. `codec.encoded` makes one of these. `kept`: the elements, if they have such records.
    """

    __slots__ = ("count", "data", "kept", "parse", "parts", "write")

    def __init__(
        self, parse: Callable[[io.BytesIO], object], write: Callable[[object, bytearray, Parts], None]
    ) -> None:
        self.parse = parse
        self.write = write
        self.data = bytearray()
        self.parts: Parts = []
        self.kept: list[object] | None = None
        self.count = 0

    def __len__(self) -> int:
        return self.count

    def append(self, element: object) -> None:
        """Raises MalformedMessage if the version cannot hold the element."""
        self.write(element, self.data, self.parts)
        self.count += 1

    def parts_at(self, start: int) -> Parts:
        return [(start + place, part) for place, part in self.parts]

    def __iter__(self) -> Iterator[object]:
        return iter(self.decoded())

    def decoded(self) -> list[object]:
        """Returns the elements as objects."""
        stream = io.BytesIO(self.data)
        return self.kept or [self.parse(stream) for _ in range(self.count)]
