"""The journal: what changes in memory while a batch is open is as before after the batch failed."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.coordinator.journal import Journal
from ottla.coordinator.journaled import Journaled, JournaledDict


@dataclass(slots=True)
class Thing(Journaled):
    name: str
    count: int = 0
    owner: str | None = None


def begun(journal: Journal) -> tuple[int, int]:
    """As `Runtime.write` begins a write."""
    mark = journal.end()
    journal.is_open = True
    journal.step += 1
    return mark


def state(thing: Thing) -> tuple[int, str | None]:
    return thing.count, thing.owner


def test_an_object_has_one_note_in_each_write() -> None:
    journal = Journal()
    thing = Thing("a", journal=journal)
    begun(journal)
    thing.count, thing.owner = 1, "x"
    thing.count += 1
    assert len(journal.notes) == 1
    begun(journal)
    thing.count = 9
    assert len(journal.notes) == 2


def test_a_write_that_fails_leaves_the_writes_before_it() -> None:
    journal = Journal()
    thing = Thing("a", journal=journal)
    begun(journal)
    thing.count = 1
    mark = begun(journal)
    thing.count, thing.owner = 2, "x"
    journal.back_to(mark)
    assert state(thing) == (1, None)
    thing.owner = "y"
    journal.revert()
    assert state(thing) == (0, None)


def test_an_object_that_was_made_before_the_first_write_is_undone() -> None:
    """The step in which it was made is not that of a write, even if no write came between."""
    journal = Journal()
    thing = Thing("a", journal=journal)
    begun(journal)
    thing.count = 1
    journal.revert()
    assert thing.count == 0


def test_a_new_object_needs_no_note() -> None:
    journal = Journal()
    begun(journal)
    Thing("a", journal=journal).count = 1
    assert journal.notes == []


def test_what_changes_after_the_notes_were_dropped_is_noted_again() -> None:
    journal = Journal()
    thing = Thing("a", journal=journal)
    begun(journal)
    thing.count = 1
    mark = begun(journal)
    thing.count = 2
    journal.release(mark)  # the batch before is in the log; the write goes on in the next one
    thing.count = 3
    journal.revert()
    assert thing.count == 1


def test_what_was_removed_together_is_there_again() -> None:
    journal = Journal()
    names = JournaledDict(journal, [("a", 1), ("b", 2), ("c", 3)])
    assert names.remove_all(["absent"]) == {}
    begun(journal)
    names["b"] = 4
    assert names.remove_all(["a", "absent", "b"]) == {"a": 1, "b": 4}
    assert names == {"c": 3}
    assert journal.end() == (2, 0)
    journal.revert()
    assert names == {"a": 1, "b": 2, "c": 3}
