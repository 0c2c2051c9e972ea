"""How a broker shows the keys of its static configuration that it does not know, and internal ones. Their names are in
the same order in tables of 16 and of 32, because the brokers have different numbers of keys.
"""

from __future__ import annotations

import pytest

from ..support.differential import Pair, own_brokers
from ..support.stories.core import describe

pytestmark = pytest.mark.slow
OF_PLUG_INS = {
    "super.users": "User:ANONYMOUS;User:admin",
    "foo.bar": "secret",
    "listener.name.plaintext.nothing": "1",
    "zookeeper.connect": "127.0.0.1:1",
    "rlmm.config.s": "b",
}
INTERNAL = {"unstable.feature.versions.enable": "true", "unstable.api.versions.enable": "false"}
kafka, ours, coordinators = own_brokers({**OF_PLUG_INS, **INTERNAL})


@pytest.mark.parametrize("synonyms", [False, True])
def test_keys_of_plug_ins_are_shown_without_their_values(pair: Pair, synonyms: bool) -> None:
    wanted = describe("1", kind=4, keys=list(OF_PLUG_INS), include_synonyms=synonyms)
    for reply in pair.ask("DescribeConfigs", 4, wanted):
        found = reply.results[0].configs
        assert {one.name for one in found} == OF_PLUG_INS.keys()
        assert {(one.value, one.is_sensitive, one.read_only, one.config_source, one.config_type) for one in found} == {
            (None, True, True, 4, 0)
        }


@pytest.mark.parametrize("key", INTERNAL)
def test_an_internal_key_is_shown_when_it_is_given(pair: Pair, key: str) -> None:
    for reply in pair.ask("DescribeConfigs", 4, describe("1", kind=4, keys=[key], include_synonyms=True)):
        assert [(one.name, one.value) for one in reply.results[0].configs] == [(key, INTERNAL[key])]


@pytest.mark.parametrize("key", ["broker.id", "node.id"])
def test_both_names_of_the_id_are_shown(pair: Pair, key: str) -> None:
    for reply in pair.ask("DescribeConfigs", 4, describe("1", kind=4, keys=[key], include_synonyms=True)):
        assert [one.value for one in reply.results[0].configs] == ["1"]
