"""What the comparison found: differences as they are found, and the sums at the end. Secrets are masked, as in the
request log.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator

from ..broker.config.secrets import MASK, SENSITIVE, masked
from ..comparing.differences import Difference
from ..comparing.identities import Identities
from ..comparing.rules import Rules, general
from ..protocol.codec import as_plain
from ..protocol.text import printable

SHOWN_MAX = 5  # differences at one path that are shown; the others are counted
VALUE_CHARS_MAX = 300
REQUEST_CHARS_MAX = 2000


class Report:
    """Takes differences. `write`: takes a line; `found`: is called for each difference."""

    def __init__(self, rules: Rules, identities: Identities, as_json: bool, write: Callable[[str], None]) -> None:
        self._rules = rules
        self._identities = identities
        self._as_json = as_json
        self._write = write
        self._counts: Counter[tuple[str, str]] = Counter()  # by API and path without names
        self._skipped: Counter[tuple[str, int, str]] = Counter()  # by API, version and reason
        self.compared: Counter[str] = Counter()
        self.asked_again: Counter[str] = Counter()  # by API: B was not as far as A yet
        self.notes: list[str] = []
        self.found: Callable[[], None] = lambda: None

    @property
    def differences(self) -> int:
        return self._counts.total()

    def note(self, text: str) -> None:
        """Something to know that is no difference."""
        self.notes.append(text)
        self._line({"event": "note", "text": text}, f"note: {text}")

    def skip(self, api: str, version: int, reason: str) -> None:
        """An exchange that is not compared."""
        self._skipped[api, version, reason] += 1

    def take(self, api: str, version: int, found: list[Difference], request: object) -> None:
        """The differences of two replies; those that rules hide are counted."""
        self.compared[api] += 1
        for one in self._rules.left(api, found):
            self.difference(api, version, one, request)

    def may_pass(self, api: str, found: list[Difference]) -> bool:
        """Whether the differences, at least one of them at a path that had none before, may be gone a little later:
        brokers differ for a moment in what there is, not in whether they refuse.
        """
        left = [one for one in found if self._rules.rule_for(api, one) is None]
        is_passing = not any(one.path.endswith("error_code") for one in left)
        return is_passing and not all(self.has_told(api, one.path) for one in left)

    def has_told(self, api: str, path: str) -> bool:
        """Whether there was a difference at a path, whatever the names in it."""
        return (api, general(path)) in self._counts

    def difference(self, api: str, version: int, one: Difference, request: object) -> None:
        """A difference that no rule hides."""
        key = api, general(one.path)
        self._counts[key] += 1
        if self._counts[key] <= SHOWN_MAX:
            is_secret = one.path.rpartition(".")[2] in SENSITIVE
            values = {side: MASK if is_secret else _plain(value) for side, value in (("a", one.a), ("b", one.b))}
            asked = json.dumps(masked(as_plain(request)))[:REQUEST_CHARS_MAX]
            self._line(
                {"event": "difference", "api": api, "version": version, "path": one.path, **values, "request": asked},
                f"{api} v{version} {one.path}: A {values['a']}, B {values['b']}; request {asked[:VALUE_CHARS_MAX]}",
            )
        self.found()

    def end(self) -> None:
        """Writes the sums."""
        if self._as_json:
            self._write(json.dumps({"event": "summary", **self._summary()}))
        else:
            for line in self._lines():
                self._write(printable(line))

    def _summary(self) -> dict[str, object]:
        return {
            "compared": dict(sorted(self.compared.items())),
            "differences": self.differences,
            "paths": [
                {"api": api, "path": path, "count": count} for (api, path), count in sorted(self._counts.items())
            ],
            "hidden": [
                {"rule": str(rule), "reason": rule.reason, "count": count}
                for rule, count in self._rules.hidden.most_common()
            ],
            "not_compared": [
                {"api": api, "version": version, "reason": reason, "count": count}
                for (api, version, reason), count in sorted(self._skipped.items())
            ],
            "ids": dict(sorted(self._identities.learned.items())),
            "asked_again": dict(sorted(self.asked_again.items())),
            "notes": self.notes,
        }

    def _lines(self) -> Iterator[str]:
        yield f"compared {self.compared.total()} replies of {len(self.compared)} APIs: {self.differences} differences"
        for (api, path), count in sorted(self._counts.items()):
            yield f"  {count} x {api} {path}"
        for rule, count in self._rules.hidden.most_common():
            yield f"  rule {rule} hid {count}: {rule.reason}"
        for (api, version, reason), count in sorted(self._skipped.items()):
            yield f"  not compared: {count} x {api} v{version}: {reason}"
        for api, count in sorted(self.asked_again.items()):
            yield f"  B was asked {count} times again: {api}"
        for kind, count in sorted(self._identities.learned.items()):
            yield f"  {kind}: {count} ids of A stand for others of B"

    def _line(self, event: dict[str, object], text: str) -> None:
        self._write(json.dumps(event) if self._as_json else printable(text))


def _plain(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(masked(as_plain(value)))
    return text if len(text) <= VALUE_CHARS_MAX else f"{text[:VALUE_CHARS_MAX]}... ({len(text)} characters)"
