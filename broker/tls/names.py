"""From a client's certificate to its principal: the subject as Java writes it, and `ssl.principal.mapping.rules`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from . import der

_KEYWORDS = {  # those of RFC 2253; other types are written as numbers
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_TEXTS = (0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1C, 0x1E)  # UTF8String and the other types of text: Java reads UTF-8 in all
_ESCAPED = ',=+<>#;"\\'
_RULE = r"(DEFAULT)|RULE:((\\.|[^\\/])*)/((\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLIT = re.compile(rf"\s*({_RULE})\s*(,\s*|$)")
_ONE = re.compile(_RULE)
_REFERENCE = re.compile(r"\\(.)|\$(\d+)|\$\{(\w+)\}|[$\\]", re.DOTALL)


def subject(certificate: bytes) -> str:
    """Returns the subject of a certificate in DER as X500Principal.getName() of Java writes it. Raises DerError."""
    start, _ = der.content(certificate, 0, der.SEQUENCE)
    start, end = der.content(certificate, start, der.SEQUENCE)  # what is signed
    fields = [(place, tag) for place, tag, _, _ in der.values(certificate, start, end)]
    is_first = fields[0][1] != 0xA0  # a version of the certificate precedes the number
    return name(certificate, fields[4 if is_first else 5][0])


def name(data: bytes, at: int = 0) -> str:
    """Returns the distinguished name at a place, last part first. Raises DerError."""
    parts = []
    for _, _, start, end in der.values(data, *der.content(data, at, der.SEQUENCE)):
        parts.append("+".join(_attribute(data, one, stop) for _, _, one, stop in der.values(data, start, end)))
    return ",".join(reversed(parts))


def _attribute(data: bytes, start: int, end: int) -> str:
    (_, _, oid_start, oid_end), (place, tag, value_start, value_end) = der.values(data, start, end)
    oid = der.oid(data[oid_start:oid_end])
    keyword = _KEYWORDS.get(oid)
    if keyword is None or tag not in _TEXTS:
        return f"{keyword or oid}=#{data[place:value_end].hex()}"
    return f"{keyword}={_escaped(data[value_start:value_end].decode('utf-8', 'replace'))}"


def _escaped(value: str) -> str:
    """Escapes special characters, and spaces at both ends."""
    out = "".join("\\" + c if c in _ESCAPED else "\\00" if c == "\0" else c for c in value)
    lead = len(out) - len(out.lstrip(" \r"))
    trail = len(out.rstrip(" \r"))
    return "".join("\\" + c if i < lead or i >= trail else c for i, c in enumerate(out))


class NoMatchingRule(ValueError):
    """No rule applies to a name."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """One rule; without a pattern it is the default, which takes the name as it is."""

    pattern: re.Pattern[str] | None
    replacement: str = ""
    case: str = ""

    def apply(self, text: str) -> str | None:
        if self.pattern is None:
            return text
        if self.pattern.fullmatch(text) is None:
            return None
        mapped = self.pattern.sub(self._replaced, text)
        return mapped.lower() if self.case == "L" else mapped.upper() if self.case == "U" else mapped

    def _replaced(self, match: re.Match[str]) -> str:
        groups = match.re.groups

        def part(reference: re.Match[str]) -> str:
            if reference[1] is not None:
                return reference[1]
            if reference[3] is not None:
                return match[reference[3]] or ""
            digits = reference[2]
            if digits is None:
                raise NoMatchingRule("Illegal group reference: group index is missing")
            for length in range(len(digits), 0, -1):  # $12 is group 1 and a 2 where there are fewer groups
                if int(digits[:length]) <= groups:
                    return (match[int(digits[:length])] or "") + digits[length:]
            return reference[0]

        return _REFERENCE.sub(part, self.replacement)


class PrincipalMapper:
    """Kafka's SslPrincipalMapper: the first rule that matches a subject makes the name of the principal.

    Raises ValueError for rules that are malformed.
    """

    def __init__(self, rules: str) -> None:
        self.text = rules
        self._rules: list[_Rule] = []
        for found in _SPLIT.finditer(rules.strip()):
            rule = found[1]
            parts = _ONE.match(rule)
            if parts is None or parts.end() != len(rule):
                rest = rule if parts is None else rule[parts.end() :]
                raise ValueError(f"Invalid rule: `{rule}`, unmatched substring: `{rest}`")
            if parts[1] is not None:
                self._rules.append(_Rule(None))
            elif parts[2] is not None:
                self._rules.append(_Rule(_compiled(parts[2]), parts[4], parts[6]))

    def principal(self, distinguished_name: str) -> str:
        """Returns the name for a subject. Raises NoMatchingRule."""
        for rule in self._rules:
            mapped = rule.apply(distinguished_name)
            if mapped is not None:
                return mapped
        raise NoMatchingRule(f"No rules apply to {distinguished_name}, rules {self.text}")


def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiles a Java expression; its named groups are written differently. Raises ValueError."""
    try:
        return re.compile(re.sub(r"\(\?<(?=[A-Za-z])", "(?P<", pattern), re.ASCII)
    except re.error as error:
        raise ValueError(f"Invalid rule: the regular expression {pattern!r}: {error}") from None
