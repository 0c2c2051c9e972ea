"""The types of bytes that are read, or changed, in place."""

from typing import Protocol, runtime_checkable

Data = bytes | bytearray | memoryview
WritableData = bytearray | memoryview


@runtime_checkable
class LateRecords(Protocol):
    """Records of a reply that are not bytes yet: whoever sends the reply reads them then, such as out of a file."""

    def __len__(self) -> int: ...

    def __bytes__(self) -> bytes: ...

    def read(self, start: int, length: int) -> bytes: ...

    def release(self) -> None:
        """The records were sent, or will not be sent."""


Parts = list[tuple[int, LateRecords]]  # with their places in the bytes around them
