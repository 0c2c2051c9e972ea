"""Random rules and Kerberos principals; the users that Kafka's own class finds beside them.

python -m tests.oracle.kerberos_cases     asks the class again, and writes `recorded/kerberos.json`
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from . import recorded_cases
from .recorded_cases import Answer

RECORDED = Path(__file__).parent / "recorded" / "kerberos.json"
CASES = 3000
_COUNTS = ("1122", ("0", "3", "01"))
_FORMATS = (
    ("$1", "$1@$0", "$1;$0", "x$1", "a"),
    ("$2", "$1/$2@$0", "$3", "$", "$01", "", "$12", "$1x$", "$9999999999"),
)
_MATCHES = ((".*@REALM", ".*", "a.*", "[a-c]+"), ("(?i)ALICE@realm", "x", "", "\\w+", "al(ice|an)@.+", "[", "*"))
_PATTERNS = (("@.*", "a", "(a)(l)?", "[aA]", "\\W"), ("^", "$", ".", "x*", "(?<n>i)", "\\w", "", "(", "ß", "(a)|(b)"))
_REPLACEMENTS = (("", "x", "$0$0"), ("$1", "$2$1", "${n}", "\\$", "\\\\", "$", "\\", "$11", "$3", "a@b", "ß", "${m}"))
_ENDS = (("", "g", "/L", "/U", "g/L", "g/U"), ("L", "U", "gU", "/", "//L", "/X", " ", "/LU", "x"))
_BROKEN = ("RULE:", "RULE:[1:$1", "RULE:[:$1]", "RULE:[x:$1]", "rule:[1:$1]", "DEFAULTS", " DEFAULT", "",
           "RULE:[2147483648:a]")  # fmt: skip
_NAMES = (
    *("alice", "alice@REALM", "alice/admin@REALM", "Alice@OTHER", "alan@realm", "a@b@c", "a/b/c@REALM", "a/b"),
    "@REALM",
    *("@", "/@", "/host@", "kafka/localhost@REALM", "ABC@REALM", "Ünïcode@REALM", "straße@REALM", "", "a b@REALM"),
    *("aa$1@REALM", "alice/@REALM", "alice@"),
)


class Case(TypedDict):
    realm: str
    rules: list[str]
    name: str


def _pick(chance: random.Random, usual: Sequence[str], odd: Sequence[str]) -> str:
    return chance.choice(odd if chance.random() < 0.12 else usual)


def _rule(chance: random.Random) -> str:
    if chance.random() < 0.2:
        return "DEFAULT"
    if chance.random() < 0.01:
        return chance.choice(_BROKEN)
    text = f"RULE:[{_pick(chance, *_COUNTS)}:{_pick(chance, *_FORMATS)}]"
    if chance.random() < 0.5:
        text += f"({_pick(chance, *_MATCHES)})"
    if chance.random() < 0.7:
        text += f"s/{_pick(chance, *_PATTERNS)}/{_pick(chance, *_REPLACEMENTS)}/"
        return text + _pick(chance, *_ENDS)
    return text + chance.choice(("", "/L", "/U"))


def cases() -> list[Case]:
    chance = random.Random(20)
    return [
        {
            "realm": chance.choice(("REALM", "REALM", "OTHER", "")),
            "rules": [_rule(chance) for _ in range(chance.choice((1, 2, 3, 4, 0)))],
            "name": chance.choice(_NAMES),
        }
        for _ in range(CASES)
    ]


def ask(asked: list[Case]) -> list[Answer]:
    return recorded_cases.ask("Kerberos", asked)


def recorded() -> list[Answer]:
    """The answers to `cases`, in their order."""
    return recorded_cases.read(RECORDED)


def main() -> int:
    recorded_cases.write(RECORDED, ask(cases()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
