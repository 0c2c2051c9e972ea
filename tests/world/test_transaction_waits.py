"""First batches of a transaction that come while the one before ends, or while another request joins it."""

from __future__ import annotations

import pytest
from ottla.protocol.errors import Errors

from ..support.transaction_world import begun, hold, produced, state, world


def test_a_produce_gives_the_end_before_it_a_moment() -> None:
    """Markers of the transaction before are under way: version 12 of Produce tries again for
    `add.partitions.to.txn.retry.backoff.max.ms`.
    """
    w = world()
    one = begun(w)
    one.write(b"a")
    hold(w, "t")
    answer = one.ending()
    w.pass_ms(5)
    one.take(answer)
    soon = one.send(b"b", index=1)
    w.pass_ms(50)
    assert not soon.done
    hold(w, "t", "immediate")
    w.pass_ms(30)
    assert produced(soon) == 0
    one.sequences[1] = 1
    hold(w, "t")
    answer = one.ending()
    w.pass_ms(5)
    one.take(answer)
    late = one.send(b"c", index=2)
    w.pass_ms(130)
    assert produced(late) == Errors.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize("settle", ["true", "false"])
def test_a_produce_right_after_an_end_goes_on_when_it_is_over(settle: str) -> None:
    """Kafka asks again after `add.partitions.to.txn.retry.backoff.ms`."""
    w = world(ottla_group_settle=settle)
    one = begun(w)
    one.write(b"a")
    hold(w, "t")
    answer = one.ending()
    w.pass_ms(5)
    one.take(answer)
    soon, lost = one.send(b"b", index=1), one.send(b"c", index=2)
    lost.waiting.cancel()
    w.pass_ms(4)
    assert not soon.done
    hold(w, "t", "immediate")
    w.pass_ms(0)
    assert soon.done is (settle == "true")
    w.pass_ms(20 - 4 - 1)
    assert soon.done is (settle == "true")
    w.pass_ms(1)
    assert produced(soon) == 0
    assert state(w) == ("Ongoing", one.epoch, [("t", 1)])
    assert not w.broker.transactions._awaited


def test_a_produce_right_after_an_end_goes_on_when_another_request_joined() -> None:
    """Two first batches of one transaction: the second waits until the first one's partition is written."""
    w = world()
    one = begun(w)
    hold(w)
    first, second = one.send(b"a"), one.send(b"b", index=1)
    w.pass_ms(3)
    assert not first.done
    hold(w, text="immediate")
    w.pass_ms(0)
    assert (produced(first), produced(second)) == (0, 0)
    assert not w.broker.transactions._awaited
