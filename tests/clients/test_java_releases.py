"""Java clients of their time, unchanged: one program, compiled against the clients of a release, at brokers that
emulate that release and others. By default of some releases at two brokers each, with OTTLA_RELEASES=1 of all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from ottla.broker.emulation.releases import releases

from ..oracle.jars import missing
from .any_release import Brokers, run, served_to, wrong
from .earlier_pairs import ALL

pytestmark = pytest.mark.slow
CHOSEN = {"0.8.2": ["3.9"], "0.9": ["3.9"], "0.10.2": ["3.9"], "3.9": ["4.4"]}


@pytest.fixture(scope="module")
def brokers() -> Iterator[Brokers]:
    reason = missing()
    if reason is not None:
        assert not os.environ.get("CI"), reason
        pytest.skip(reason)
    with Brokers() as made:
        yield made


@pytest.mark.parametrize("client", releases() if ALL else CHOSEN)
def test_clients_of_a_release(brokers: Brokers, client: str) -> None:
    """They write with each codec and without acknowledgements, in transactions where they have them, read by assignment
    and in a group, commit, find offsets by time, and administer.
    """
    known = releases()
    served = served_to(known[client]) if ALL else [known[client], *(known[one] for one in CHOSEN[client])]
    said = run(known[client], served, brokers.address)
    assert [one for each in served for one in wrong(known[client], each, said.get(each.name, {}))] == []
