"""What the verdict keeps of producers that get a new epoch again and again."""

from __future__ import annotations

import pytest
from ottla.verdict.events import Reply, Request
from ottla.verdict.rule import Recent, Rule
from ottla.verdict.rules import all_rules
from ottla.verdict.rules.epochs import NewestEpochs

from ..support.verdict_cases import initialized, produced
from ..support.verdict_script import Script, records

BY_EPOCH = "KIP-98.sequences-in-order", "KIP-98.five-in-flight", "KIP-360.epoch-bumped", "protocol.closed-while-idle"


def fed(id: str, script: Script) -> Rule:
    """The object of a rule after the events of a script."""
    (rule,) = (one() for one in all_rules() if one.about.id == id)
    asked: dict[int, Request] = {}
    for event in script.events:
        if isinstance(event, Request):
            asked[event.exchange] = event
            rule.asked(event)
        elif isinstance(event, Reply):
            rule.answered(asked[event.exchange], event)
    return rule


@pytest.mark.parametrize("id", BY_EPOCH)
def test_only_the_newest_epoch_of_a_partition_is_kept(id: str) -> None:
    """With transactions of version 2 each has its own: 10,000 of them took 30 MB."""
    script = Script()
    initialized(script)
    for epoch in range(50):
        produced(script, records(0, epoch=epoch))
    states = [one for one in vars(fed(id, script)).values() if isinstance(one, (Recent, NewestEpochs))]
    assert max(map(len, states)) == 1


@pytest.mark.parametrize(
    ("batches", "failed"),
    [
        ([(0, 0), (1, 0), (1, 1)], 0),
        ([(0, 0), (1, 0), (0, 9)], 0),
        ([(0, 0), (1, 3)], 1),
        ([(0, 0), (1, 0), (1, 3)], 1),
    ],
)
def test_sequences_begin_again_in_each_epoch(batches: list[tuple[int, int]], failed: int) -> None:
    """A batch of an epoch that is over is not looked at."""
    script = Script()
    initialized(script)
    for epoch, sequence in batches:
        produced(script, records(sequence, epoch=epoch))
    assert script.rule("KIP-98.sequences-in-order")["failed"] == failed
