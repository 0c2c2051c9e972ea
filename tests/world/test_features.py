"""Features: levels that clients see and change."""

from __future__ import annotations

from typing import Any

from ottla.protocol import messages as m

from ..support.world import World

STREAMS = "streams.version"


def listed(w: World) -> tuple[dict[str, int], set[str]]:
    r = m.ApiVersionsRequest(client_software_name="t", client_software_version="1")
    reply = w.ask("ApiVersions", 4, r)
    return {f.name: f.max_version_level for f in reply.finalized_features}, {f.name for f in reply.supported_features}


def updated(w: World, level: int) -> Any:
    u = m.UpdateFeaturesRequest
    return w.ask(
        "UpdateFeatures",
        2,
        u(
            timeout_ms=1000,
            feature_updates=[u.FeatureUpdateKey(feature=STREAMS, max_version_level=level, upgrade_type=2)],
        ),
    )


def test_streams_version_is_finalized_and_can_be_changed() -> None:
    w = World(None, 0)
    finalized, supported = listed(w)
    assert (finalized[STREAMS], STREAMS in supported) == (1, True)
    assert updated(w, 0).error_code == 0
    assert STREAMS not in listed(w)[0]
    assert World(w.lose_power(), 0).broker.image.features.get(STREAMS, 0) == 0
