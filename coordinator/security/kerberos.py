"""From a Kerberos principal to a user: `sasl.kerberos.principal.to.local.rules` (Kafka's KerberosShortNamer)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

_NAME = re.compile(r"([^/@]*)(?:/([^/@]*))?@([^/@]*)")
_RULE = re.compile(
    r"DEFAULT|RULE:\[(?P<count>\d*):(?P<format>[^\]]*)\](?:\((?P<match>[^)]*)\))?"
    r"(?:s/(?P<pattern>[^/]*)/(?P<replacement>[^/]*)/(?P<all>g)?)?/?(?P<case>[LU])?",
    re.ASCII,
)
_PARAMETER = re.compile(r"\$(\d*)", re.ASCII)
_REFERENCE = re.compile(r"\\(.?)|\$(?:(\d+)|\{(\w*)\})?", re.ASCII | re.DOTALL)
_NOT_SIMPLE = re.compile("[/@]")
_INT_MAX = 2**31 - 1
_DEFAULT = "DEFAULT"


class KerberosError(ValueError):
    """A principal has no user: its name is malformed, or the rules do not map it."""


@dataclass(frozen=True, slots=True)
class KerberosName:
    """A principal, `service/host@REALM`."""

    service: str
    host: str | None = None
    realm: str | None = None

    @classmethod
    def parse(cls, name: str) -> KerberosName:
        """Parses the name of a principal. Raises KerberosError."""
        parts = _NAME.fullmatch(name)
        if parts is not None:
            return cls(parts[1], parts[2], parts[3])
        if "@" in name:
            raise KerberosError(f"Malformed Kerberos name: {name}")
        return cls(name)

    def __str__(self) -> str:
        host = "" if self.host is None else f"/{self.host}"
        return f"{self.service}{host}" + ("" if self.realm is None else f"@{self.realm}")


@dataclass(frozen=True, slots=True)
class _Rule:
    """One rule. `text`: the rule as error messages name it; `count`: of the components of the names that it is for."""

    text: str
    count: int
    format: str
    match: re.Pattern[str] | None
    pattern: re.Pattern[str] | None
    replacement: str
    replaces_all: bool
    case: str

    def apply(self, parameters: list[str]) -> str | None:
        """Returns the user of a name, whose realm comes first; None if the rule does not apply."""
        if len(parameters) - 1 != self.count:
            return None
        base = _filled(self.format, parameters)
        if self.match is not None and self.match.fullmatch(base) is None:
            return None
        if self.pattern is not None:
            base = self.pattern.sub(_replacer(self.replacement), base, 0 if self.replaces_all else 1)
        _check_simple(base, self.text)
        return base.lower() if self.case == "L" else base.upper() if self.case == "U" else base


class KerberosShortNamer:
    """Maps principals to users. `rules`: the first that applies counts; `default_realm`: whose principals the rule
    DEFAULT maps to their first component.

    Raises ValueError for a malformed rule, with Kafka's words.
    """

    def __init__(self, default_realm: str, rules: Iterable[str]) -> None:
        self._default_realm = default_realm
        self._rules = [None if rule == _DEFAULT else _parsed(rule) for rule in rules]

    def short_name(self, name: KerberosName) -> str:
        """Returns the user of a principal. Raises KerberosError."""
        if name.host is None and name.realm is None:
            return name.service
        parameters = [name.realm or "", name.service] + ([] if name.host is None else [name.host])
        for rule in self._rules:
            found = self._by_default(parameters) if rule is None else rule.apply(parameters)
            if found is not None:
                return found
        texts = ", ".join(_DEFAULT if rule is None else rule.text for rule in self._rules)
        raise KerberosError(f"No rules apply to {name}, rules [{texts}]")

    def _by_default(self, parameters: list[str]) -> str | None:
        if parameters[0] != self._default_realm:
            return None
        _check_simple(parameters[1], _DEFAULT)
        return parameters[1]


def _parsed(rule: str) -> _Rule:
    found = _RULE.match(rule)
    if found is None:
        raise ValueError(f"Invalid rule: {rule}")
    if found.end() != len(rule):
        raise ValueError(f"Invalid rule: `{rule}`, unmatched substring: `{rule[found.end() :]}`")
    count, match, pattern, replacement = found["count"], found["match"], found["pattern"], found["replacement"]
    if not count or int(count) > _INT_MAX:
        raise ValueError(f'For input string: "{count}"')
    text = f"RULE:[{int(count)}:{found['format']}]" + ("" if match is None else f"({match})")
    if pattern is not None:
        text += f"s/{pattern}/{replacement}/{found['all'] or ''}"
    return _Rule(
        text + (f"/{found['case']}" if found["case"] else ""),
        int(count),
        found["format"],
        None if match is None else _compiled(match),
        None if pattern is None else _compiled(pattern),
        replacement or "",
        found["all"] is not None,
        found["case"] or "",
    )


def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiles a Java expression; its named groups are written differently. Raises ValueError."""
    try:
        return re.compile(re.sub(r"\(\?<(?=[A-Za-z])", "(?P<", pattern), re.ASCII)
    except re.error as error:
        raise ValueError(f"Invalid rule: the regular expression {pattern!r}: {error}") from None


def _filled(text: str, parameters: list[str]) -> str:
    """Replaces `$n` by a part of the name, `$0` being the realm."""

    def part(found: re.Match[str]) -> str:
        digits = found[1]
        if not digits or int(digits) > _INT_MAX:
            raise KerberosError(f"bad format in username mapping in {digits}")
        number = int(digits)
        if number >= len(parameters):
            raise KerberosError(f"index {number} from {text} is outside of the valid range 0 to {len(parameters) - 1}")
        return parameters[number]

    return _PARAMETER.sub(part, text)


def _check_simple(user: str, rule: str) -> None:
    if _NOT_SIMPLE.search(user) is not None:
        raise KerberosError(f"Non-simple name {user} after auth_to_local rule {rule}")


def _replacer(replacement: str) -> Callable[[re.Match[str]], str]:
    """Returns what makes a replacement as Java's Matcher.appendReplacement does."""

    def replaced(match: re.Match[str]) -> str:
        return _REFERENCE.sub(lambda reference: _referenced(reference, match), replacement)

    return replaced


def _referenced(reference: re.Match[str], match: re.Match[str]) -> str:
    escaped, digits, name = reference[1], reference[2], reference[3]
    if escaped is not None:
        if not escaped:
            raise KerberosError("character to be escaped is missing")
        return escaped
    if digits is not None:
        length = next((n for n in range(len(digits), 1, -1) if int(digits[:n]) <= match.re.groups), 1)
        if int(digits[:length]) > match.re.groups:
            raise KerberosError(f"No group {digits[:length]}")
        return (match[int(digits[:length])] or "") + digits[length:]
    if name is None:
        is_last = reference.end() == len(reference.string)
        raise KerberosError("Illegal group reference" + (": group index is missing" if is_last else ""))
    if name not in match.re.groupindex:
        raise KerberosError(f"No group with name {{{name}}}")
    return match[name] or ""
