"""Reads the entry of a login module from a JAAS line, as Kafka does (JaasConfig, over Java's StreamTokenizer).

    org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="alice-secret";

A value needs quotes unless it is a word; both kinds of quotes and Java's escapes are allowed, and comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

FLAGS = frozenset(("REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL"))


def _token(more: str) -> re.Pattern[str]:
    """Returns what matches a token. `more`: characters of words besides letters, digits, `$`, `_`, `-` and `.`."""
    return re.compile(
        r"""(?P<skipped>[\x00-\x20]+|//[^\r\n]*|/\*.*?(?:\*/|\Z)|/[^\r\n]*)
          | (?P<quoted>"(?:\\.|[^"\\\r\n])*+(?:"|$|(?=[\r\n]))|'(?:\\.|[^'\\\r\n])*+(?:'|$|(?=[\r\n])))
          | (?P<number>-?(?:\d[\d.]*|\.\d[\d.]*))
          | (?P<word>[A-Za-z_$MORE\u00a0-\U0010ffff-][A-Za-z0-9_$.MORE\u00a0-\U0010ffff-]*)
          | (?P<mark>.)""".replace("MORE", more),
        re.VERBOSE | re.DOTALL,
    )


LINE_TOKEN, FILE_TOKEN = _token(""), _token("*")
_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@dataclass(frozen=True, slots=True)
class JaasEntry:
    """A login module, by class name, and its options, which may be secrets and are not shown."""

    module: str
    options: dict[str, str] = field(repr=False)


def parse_jaas(text: str) -> JaasEntry:
    """Parses the one entry of a JAAS line. Raises ValueError with Kafka's words, which contain no value."""
    entries = list(_entries(Tokens(text)))
    if not entries:
        raise ValueError("Login module not specified in JAAS config")
    if len(entries) > 1:
        raise ValueError(f"JAAS config property contains {len(entries)} login modules, should be 1 module")
    return entries[0]


class Tokens:
    """Tokens with one position. A token is its text for a word or a quoted value (`text`, with the `quote`), or a
    character (`mark`); a number is neither.
    """

    def __init__(self, text: str, pattern: re.Pattern[str] = LINE_TOKEN) -> None:
        self._all = text
        self._left = pattern.finditer(text)
        self._at = 0
        self.text: str | None = None
        self.mark = self.quote = ""
        self.is_over = False

    def next(self) -> bool:
        """Moves to the next token; returns whether there is one."""
        self.text, self.mark, self.quote = None, "", ""
        for found in self._left:
            if found["skipped"] is None:
                self._at = found.start()
                self._take(found)
                return True
        self.is_over = True
        return False

    @property
    def line(self) -> int:
        """The line of the token."""
        return self._all.count("\n", 0, self._at) + 1

    def _take(self, found: re.Match[str]) -> None:
        if found["word"] is not None:
            self.text = found["word"]
        elif found["quoted"] is not None:
            quoted = found["quoted"]
            inside = quoted[1:-1] if len(quoted) > 1 and quoted[-1] == quoted[0] else quoted[1:]
            self.text, self.quote = _ESCAPE.sub(_unescaped, inside), quoted[0]
        elif found["mark"] is not None:
            self.mark = found["mark"]


def _unescaped(found: re.Match[str]) -> str:
    what = found[1]
    return chr(int(what, 8)) if what[0] in "01234567" else _ESCAPES.get(what, what)


def _entries(tokens: Tokens) -> Iterator[JaasEntry]:
    while tokens.next():
        module = tokens.text
        if not tokens.next():
            raise ValueError("Login module control flag not specified in JAAS config")
        if tokens.text is None:
            raise ValueError("Login module control flag is not available in the JAAS config")
        if tokens.text.upper() not in FLAGS:
            raise ValueError(f"Invalid login module control flag '{tokens.text}' in JAAS config")
        yield JaasEntry(module or "", _options(tokens))


def _options(tokens: Tokens) -> dict[str, str]:
    options = {}
    while tokens.next() and tokens.mark != ";":
        key = tokens.text
        is_pair = tokens.next() and tokens.mark == "=" and tokens.next()
        if key is None or not is_pair or tokens.text is None:
            raise ValueError(f"Value not specified for key '{key or 'null'}' in JAAS config")
        options[key] = tokens.text
    if tokens.is_over:
        raise ValueError("JAAS config entry not terminated by semi-colon")
    return options
