"""Subjects of certificates and rules that map them, with what Java and Kafka make of them.

python -m tests.oracle.principal_cases     asks the classes again, and writes `recorded/principals.json`
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from ottla.broker.tls import der

from . import recorded_cases
from .recorded_cases import Answer

RECORDED = Path(__file__).parent / "recorded" / "principals.json"
Case = dict[str, str]
DN = "CN=Duke,OU=ServiceUsers,O=Org,C=US"
RULES = (
    "",
    " ",
    "DEFAULT",
    " DEFAULT ",
    "DEFAULT,nonsense",
    "nonsense",
    "RULE:",
    "RULE:^CN=(.*?)$",
    "RULE:^CN=(.*?)/$1/L",
    "RULE:^CN=(.*?),.*$/$1",
    "RULE:^CN=(.*?),.*$/$1/",
    "RULE:^CN=(.*?),.*$/$1/L",
    "RULE:^CN=(.*?),.*$/$1/U",
    "RULE:^CN=(.*?),.*$/$1/X",
    "RULE:^CN=(.*?),.*$/$1/LX",
    "RULE:^cn=(.*?),.*$/$1/L",
    "RULE:^cn=(.*?),.*$/$1/L,DEFAULT",
    "RULE:^CN=(.*?),OU=(.*?),.*$/$2@$1/,DEFAULT",
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/, RULE:^CN=(.*?),.*$/other/, DEFAULT",
    "RULE:.*/x/",
    "RULE:.+/x/",
    "RULE:(.*)/[$1]/",
    "RULE:^(.*)$/$0/",
    "RULE:^CN=(.*?),.*$/$1$2/",
    "RULE:^CN=(.*?),.*$/$12/",
    "RULE:^CN=(.*?),(.*?),(.*)$/$3-$11-$2/",
    "RULE:^CN=(.*?),.*$/a$/",
    "RULE:^CN=(.*?),.*$/\\$1/",
    "RULE:^CN=(.*?),.*$/\\/$1/",
    "RULE:^CN=(?<cn>.*?),.*$/${cn}/",
    "RULE:^CN=([^,]*?),.*$/\\\\$1/L",
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L,DEFAULT",
    "RULE:^CN=(\\w+),.*$/$1/",
    "RULE:^CN=(a/b),.*$/$1/",
    "RULE:^CN=(a\\/b|Duke),.*$/$1/",
    "RULE:/x/",
    "RULE:(/x/",
)
SUBJECTS = (DN, "CN=A\\, b,OU=ServiceUsers,O=x", "", "O=Org", "CN=a/b,O=x", "CN=Ünïcode,O=ß")
_TYPES = (
    *("2.5.4.3", "2.5.4.6", "2.5.4.7", "2.5.4.8", "2.5.4.9", "2.5.4.10", "2.5.4.11", "2.5.4.12", "2.5.4.5"),
    *("0.9.2342.19200300.100.1.1", "0.9.2342.19200300.100.1.25", "1.2.840.113549.1.9.1", "1.3.6.1.4.1.99999.1"),
)
_VALUES = ("Duke", "a b", " lead", "trail ", "  ", "", "#x", "a,b", 'q"q', "p+l;<>=\\", "ß漢", "x\0y", "a\rb", "\n")
_TAGS = {0x0C: "utf-8", 0x13: "latin-1", 0x14: "latin-1", 0x16: "latin-1", 0x1E: "utf-16-be"}


def _oid(text: str) -> bytes:
    first, second, *rest = map(int, text.split("."))
    out = bytearray()
    for number in (40 * first + second, *rest):
        groups = [number & 0x7F]
        while number := number >> 7:
            groups.append(0x80 | number & 0x7F)
        out += bytes(reversed(groups))
    return der.encoded(der.OID, bytes(out))


def _attribute(chance: random.Random) -> bytes:
    tag, value = chance.choice([*_TAGS.items()]), chance.choice(_VALUES)
    if tag[0] != 0x0C and not value.isascii():
        tag = (0x1E, "utf-16-be")
    return der.encoded(der.SEQUENCE, _oid(chance.choice(_TYPES)), der.encoded(tag[0], value.encode(tag[1])))


def _name(chance: random.Random) -> bytes:
    parts = [
        der.encoded(der.SET, *(_attribute(chance) for _ in range(chance.choice((1, 1, 1, 2)))))
        for _ in range(chance.randint(0, 4))
    ]
    return der.encoded(der.SEQUENCE, *parts)


def cases() -> list[Case]:
    chance = random.Random(20)
    single = [
        der.encoded(der.SEQUENCE, der.encoded(der.SET, der.encoded(der.SEQUENCE, _oid(kind), der.encoded(0x0C, b"v"))))
        for kind in _TYPES
    ]
    found: list[Case] = [{"name": name.hex()} for name in (*single, *(_name(chance) for _ in range(400)))]
    return found + [{"rules": rules, "subject": subject} for rules in RULES for subject in SUBJECTS]


def ask(asked: list[Case]) -> list[Answer]:
    return recorded_cases.ask("Principals", asked)


def recorded() -> list[Answer]:
    """The answers to `cases`, in their order."""
    return recorded_cases.read(RECORDED)


def main() -> int:
    recorded_cases.write(RECORDED, ask(cases()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
