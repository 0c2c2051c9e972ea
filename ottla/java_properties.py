"""Values as lines of the properties files that Java reads. It takes each byte of a file for a character of Latin-1."""

from __future__ import annotations

from typing import Final

_ESCAPES: Final = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}


def escaped(value: str) -> str:
    """Returns a value so that Java reads it: in ASCII, and with the blanks that it begins with."""
    text = "".join(_ESCAPES.get(one) or _in_ascii(one) for one in value)
    return f"\\{text}" if text.startswith(" ") else text


def _in_ascii(character: str) -> str:
    if character.isascii():
        return character
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
