"""What happens soon after a start, and what reaches the event loop."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from ottla.broker import bugs
from ottla.broker.net.server import _unhandled

STEPS = """
import sys
import ottla.broker.net.server
from ottla.broker.apis import apis
from ottla.broker.net import warming

known, most = set(sys.modules), 0
for _ in warming.imports(apis()):
    found = {name for name in sys.modules if name.startswith("ottla.") and name not in known}
    known |= found
    most = max(most, len(found))
missing = [api.name for api in apis().values() if api._handle is None]
print(most, missing, "ottla.coordinator.group.shard" in sys.modules,
"ottla.coordinator.transaction.shard" in sys.modules, "ottla.broker.net.turns" in sys.modules)
"""


@pytest.mark.long
def test_modules_are_imported_some_at_a_time() -> None:
    """In a process of its own, where nothing has imported them before."""
    done = subprocess.run([sys.executable, "-c", STEPS], capture_output=True, text=True, timeout=60, check=True)
    most, rest = done.stdout.split(maxsplit=1)
    assert int(most) <= 12
    assert rest.strip() == "[] True True True"


STARTED = """
import sys
from tests.support.world import World

World()
print(*sorted(name for name in sys.modules if name.startswith("ottla.coordinator.group.")))
"""


@pytest.mark.long
def test_a_start_imports_nothing_of_share_groups_and_streams_groups() -> None:
    """Nor of other groups more than the configured assignors' needs; the rest is imported when the start is over."""
    done = subprocess.run([sys.executable, "-c", STARTED], capture_output=True, text=True, timeout=60, check=True)
    found = done.stdout.split()
    assert [name for name in found if ".share" in name or ".streams" in name] == []
    assert "ottla.coordinator.group.shard" not in found


COMPILED = """
from ottla.broker.apis import apis
from ottla.broker.net import warming
from ottla.protocol import codec, message, schema_cache

schema_cache.load = lambda schema, name: None  # a first start
compile_function, titles = message.compile_function, []

def noted(title, *rest):
    titles.append(title)
    return compile_function(title, *rest)

message.compile_function = noted
most, before = 0, 0
for _ in warming.codecs(apis()):
    most, before = max(most, len(titles) - before), len(titles)
for api in apis().values():
    if api.name.endswith(("GroupHeartbeat", "GroupDescribe", "GroupTopologyDescriptionUpdate", "JoinGroup")):
        codec.reader(api.request, api.high)
        codec.writer(api.response, api.high)
for kind in ("Consumer", "Share", "Streams"):
    codec.writer(f"{kind}GroupCurrentMemberAssignmentValue", 0)
print(most, len(titles) - before)
"""


@pytest.mark.slow
def test_codecs_of_coordinators_are_compiled_some_at_a_time() -> None:
    done = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True, timeout=60, check=True)
    most, again = map(int, done.stdout.split())
    assert 1 <= most <= 4
    assert again == 0


COLLECTED = """
import gc
from ottla.broker.net import warming

def main():
    warming.freeze()
    looked_at = []

    def collected(phase, info):
        if phase == "start":
            looked_at.append(len(gc.get_objects()))

    gc.callbacks.append(collected)
    kept = []
    for partition in range(5000):
        kept.append([[] for _ in range(30)])  # the objects of a partition, about
    for _ in range(200_000):
        kept.append([])
    gc.callbacks.remove(collected)
    print(len(looked_at), max(looked_at))

main()
"""


@pytest.mark.slow
def test_the_collector_looks_at_some_objects_at_a_time() -> None:
    done = subprocess.run([sys.executable, "-c", COLLECTED], capture_output=True, text=True, timeout=60, check=True)
    times, most = map(int, done.stdout.split())
    assert times > 2
    assert most <= 55_000


def test_what_reaches_the_event_loop_is_counted() -> None:
    before = bugs.count()
    loop = asyncio.new_event_loop()
    try:
        _unhandled(loop, {"message": "a callback", "exception": ValueError("wrong")})
        _unhandled(loop, {"message": "something without an exception"})
    finally:
        loop.close()
    assert bugs.count() == before + 2
