"""Reads JAAS files, as Java does (`java.security.auth.login.config`, sun.security.provider.ConfigFile).

    KafkaServer {
        org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="alice-secret";
    };

A section has any number of login modules. Values need double quotes unless they are words; `${/}` in a value is the
separator of paths.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from .config import LOGIN_CONFIG, Config, ConfigError
from .jaas import FILE_TOKEN, FLAGS, JaasEntry, Tokens

SEPARATORS: Final = {"/": "/"}
_PROPERTY = re.compile(r"\$\{\{.*?\}\}|\$\{(?P<name>[^}]*)\}")

Sections = Mapping[str, Sequence[JaasEntry]]
"""The login modules of a file, by section."""


def load_sections(config: Config) -> Sections | None:
    """Reads the JAAS file of a configuration; None if it names none. Raises ConfigError."""
    path: str = config[LOGIN_CONFIG]
    if not path:
        return None
    path = path.removeprefix("=")  # of `-Djava.security.auth.login.config==FILE`
    if path.startswith("file:"):
        path = unquote(urlsplit(path).path)
    where = config.where[LOGIN_CONFIG]
    try:
        return parse_jaas_file(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(where, f"{LOGIN_CONFIG}: cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ConfigError(where, f"{LOGIN_CONFIG}: {path} is not UTF-8 text") from None
    except ValueError as error:
        raise ConfigError(where, f"{LOGIN_CONFIG}: {path}: Configuration Error: {error}") from None


def parse_jaas_file(text: str) -> Sections:
    """Parses a JAAS file. Raises ValueError with Java's words, which contain no value of an option."""
    return _File(text).sections()


class _File:
    """A parser that looks one token ahead."""

    def __init__(self, text: str) -> None:
        self._tokens = Tokens(text, FILE_TOKEN)
        self._tokens.next()

    def sections(self) -> Sections:
        found: dict[str, list[JaasEntry]] = {}
        names: dict[str | None, None] = {}
        while not self._tokens.is_over:
            name = self._tokens.text
            self._tokens.next()
            entries = self._entries()
            if name in names:
                raise ValueError(f"Can not specify multiple entries for {name}")
            names[name] = None
            if entries and name is not None:
                found[name] = entries
        return found

    def _entries(self) -> list[JaasEntry]:
        entries = []
        self._mark("{")
        while self._tokens.mark != "}":
            module, flag = self._word("module class name"), self._word("controlFlag").upper()
            if flag not in FLAGS:
                raise ValueError(f"Invalid control flag, {flag}")
            options = {}
            while self._tokens.mark != ";":
                key = self._word("option key")
                self._mark("=")
                options[key] = expanded(self._word("option value"))
            self._tokens.next()
            entries.append(JaasEntry(module, options))
        self._mark("}")
        self._mark(";")
        return entries

    def _word(self, what: str) -> str:
        tokens = self._tokens
        if tokens.text is None or tokens.quote == "'":
            raise self._unexpected(what)
        text = tokens.text
        tokens.next()
        return text

    def _mark(self, mark: str) -> None:
        if self._tokens.mark != mark:
            raise self._unexpected(mark)
        self._tokens.next()

    def _unexpected(self, expected: str) -> ValueError:
        if self._tokens.is_over:
            return ValueError(f"expected [{expected}], read [end of file]")
        return ValueError(f"Line {self._tokens.line}: expected [{expected}]")


def expanded(value: str) -> str:
    """Returns the value of an option with its properties. Raises ValueError for one that is not known."""

    def known(found: re.Match[str]) -> str:
        name = found["name"]
        if name is None:
            return found[0]
        if name not in SEPARATORS:
            raise ValueError(f"unable to expand property {name}")
        return SEPARATORS[name]

    return _PROPERTY.sub(known, value)


def entry_of(entries: Sequence[JaasEntry], module: str) -> JaasEntry | None:
    """Returns the options of a login module in a section, of which the first one counts (Kafka's configEntryOption);
    None if the section does not have the module.
    """
    found = [one for one in entries if one.module == module]
    if not found:
        return None
    options: dict[str, str] = {}
    for one in found:
        options = {**one.options, **options}
    return JaasEntry(module, options)
