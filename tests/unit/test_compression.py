"""What is compressed has the bytes that Kafka makes."""

from __future__ import annotations

from ottla.protocol import compression


def test_gzip_begins_with_the_header_of_java() -> None:
    for level in (None, 1, 9):
        packed = compression.compress(compression.GZIP, b"abc", level)
        assert packed[:10].hex() == "1f8b08000000000000ff"
        assert compression.decompress(compression.GZIP, packed) == b"abc"
