"""The errors that Kafka documents for its APIs: in the comments of the message schemas that its jar contains, and in
those at the head of the response classes of its source code.

python -m tests.oracle.documented_errors     reads the jar again, and writes `recorded/documented_errors.json`; the
lists of the response classes (`classes`), which the jar does not contain, stay as they were read from the source
"""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

from ottla.broker.apis import apis
from ottla.protocol.errors import CODES

from .jars import jar_folder

RECORDED = Path(__file__).parent / "recorded" / "documented_errors.json"
Documented = dict[str, list[str]]
"""The names of errors, by API."""


def of_messages() -> Documented:
    """What the comments of the schemas name."""
    (path,) = jar_folder("broker").glob("kafka-clients-*.jar")
    found = {}
    with zipfile.ZipFile(path) as jar:
        for api in apis(unstable=True).values():
            text = jar.read(f"common/message/{api.response}.json").decode()
            comments = [*re.findall(r"//(.*)", text), *re.findall(r'"about":\s*"([^"]*)"', text)]
            words = {word for line in comments for word in re.findall(r"\b[A-Z][A-Z_]+\b", line)}
            found[api.name] = sorted(words & CODES.keys() - {"NONE"})
    return {name: codes for name, codes in found.items() if codes}


def recorded() -> dict[str, Documented]:
    """By where they were read: `messages`, `classes`."""
    loaded: dict[str, Documented] = json.loads(RECORDED.read_text())
    return loaded


if __name__ == "__main__":
    RECORDED.write_text(json.dumps({**recorded(), "messages": of_messages()}, indent=1) + "\n")
