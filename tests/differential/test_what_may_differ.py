"""After all stories: the list of what may differ between two brokers is short, and each of its rows was needed."""

from __future__ import annotations

import pytest

from ..support.differential import ALLOWED, Tally
from ..support.transcripts import FOLDER

pytestmark = pytest.mark.slow
# two brokers may do something in the same millisecond
MAY_BE_EQUAL = {name for name, reason in ALLOWED.items() if reason.startswith("the moment of")}


def test_the_list_of_what_may_differ_is_short_and_used(
    tally: Tally, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    with capsys.disabled():
        print(
            f"\n{tally.replies} replies in {len(tally.stories)} stories, {len(tally.differences)} differences, "
            f"{len(tally.used)} of {len(ALLOWED)} allowances used"
        )
    assert len(ALLOWED) <= 30
    if request.session.testsfailed:
        pytest.skip("a story that failed was not told to its end")
    modules = {path.parent.name for path in tally.stories}
    if request.config.option.keyword or modules != {path.name for path in FOLDER.iterdir()}:
        pytest.skip("not all stories ran")
    assert set(FOLDER.rglob("*.jsonl")) == tally.stories, "each transcript has a story"
    assert tally.used <= set(ALLOWED)
    assert set(ALLOWED) - tally.used <= MAY_BE_EQUAL, "each row is needed by a story"
    assert tally.replies > 5000
