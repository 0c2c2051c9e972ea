"""Random sets of access control entries with questions about them; the answers of Kafka's StandardAuthorizer beside
them.

python -m tests.oracle.acl_cases     asks Kafka's own class again, and writes `recorded/acls.txt`
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass
from pathlib import Path

from ottla.coordinator.security.acls import SUPPORTED, Acl, Operation, PatternType, Permission, ResourceType

from .recorded_cases import words

RECORDED = Path(__file__).parent / "recorded" / "acls.txt"
WORLDS = 3000
QUESTIONS = 32
PRINCIPALS = ("User:a", "User:b", "User:a:b", "Group:a", "User:")
HOSTS = ("10.0.0.1", "10.0.0.2", "10.0.1.1", "0:0:0:0:0:0:0:1", "2001:db8:0:0:0:0:0:5")
HOST_PATTERNS = (
    *("*", "*", *HOSTS, "10.0.0.0/24", "10.0.0.1/32", "0.0.0.0/0", "10.0.0.0/33", "10.0.0/8", "::/0", "2001:db8::/32"),
    *("::1/128", "::1", "/"),
)
TYPES = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID)


@dataclass(frozen=True)
class World:
    super_users: str
    allows_uncovered: bool
    acls: list[Acl]
    questions: list[tuple[str, str, int, int, str | None]]  # principal, host, operation, resource type, name


def _name(chance: random.Random) -> str:
    # no character that is less than "*": with these, Kafka's search leaves its bounds
    return "".join(chance.choice("ab-") for _ in range(chance.choice((1, 1, 2, 2, 3, 4, 6))))


def world(seed: int) -> World:
    """Few names, principals and operations, so that entries meet."""
    chance = random.Random(seed)
    types = [chance.choice(TYPES) for _ in range(2)]
    names = [_name(chance) for _ in range(chance.randint(1, 8))]
    operations = chance.sample([one for one in Operation if one > Operation.ANY], chance.randint(1, 4))
    principals = chance.sample(PRINCIPALS, 3)
    many = chance.choice((0, 1, 2, 4, 8, 16, 40))
    acls = [
        Acl(
            chance.choice(types),
            chance.choice([*names, "*", "hardcode"]),
            chance.choice((PatternType.LITERAL, PatternType.PREFIXED)),
            chance.choice([*principals, "User:*"]),
            chance.choice(HOST_PATTERNS),
            chance.choice([*operations, Operation.ALL]),
            Permission.DENY if chance.random() < 0.3 else Permission.ALLOW,
        )
        for _ in range(many)
    ]
    questions = []
    for _ in range(QUESTIONS):
        kind = chance.choice(types)
        asked = chance.choice([*operations, *SUPPORTED[kind], Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS])
        if asked == Operation.ALL:
            asked = Operation.READ
        name = None if chance.random() < 0.2 else chance.choice([*names, _name(chance), chance.choice(names) + "b"])
        questions.append((chance.choice(principals), chance.choice(HOSTS), int(asked), int(kind), name))
    supers = chance.choice(("", "User:b", " User:b ;Group:a;", "User:*"))
    return World(supers, chance.random() < 0.3, list(dict.fromkeys(acls)), questions)


def ask(worlds: list[World]) -> list[str]:
    """Kafka's answers: for each world a 1 or a 0 for each question."""
    cases = [
        {
            "superUsers": one.super_users,
            "allowUncovered": one.allows_uncovered,
            "acls": one.acls,
            "questions": one.questions,
        }
        for one in worlds
    ]
    return words("Acls", cases)


def recorded() -> list[str]:
    return [f"{int(line, 16):0{QUESTIONS}b}" for line in RECORDED.read_text().split()]


def main() -> int:
    answers = ask([world(seed) for seed in range(WORLDS)])
    RECORDED.write_text("".join(f"{int(answer, 2):0{QUESTIONS // 4}x}\n" for answer in answers))
    allowed = sum(answer.count("1") for answer in answers)
    print(f"{WORLDS} sets of entries, {WORLDS * QUESTIONS} questions, {allowed} of which Kafka allows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
