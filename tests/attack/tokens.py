"""Delegation tokens: as many as a principal can make, and descriptions of all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.ask import lab_text
from ..support.poll import until
from ..support.secured import SETTINGS, second_listener
from ..support.wire import Wire
from .harness import Site, attack
from .limits import MORE, reached
from .sasl import handshake, say_token

SECURED = {
    **SETTINGS,
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "delegation.token.secret.key": "the secret key",
}
REQUESTS = 100_000
ROOM = 10_000  # for tokens, where nothing is configured
AT_A_TIME = 500
Create, Describe = m.CreateDelegationTokenRequest, m.DescribeDelegationTokenRequest


def logged_in(site: Site) -> Wire:
    wire = Wire(second_listener(site.broker))
    handshake(wire)
    say_token(wire, b"\0alice\0alice-secret")
    assert wire.reply("SaslAuthenticate", 2).error_code == 0
    return wire


def asked(wire: Wire, name: str, version: int, requests: Sequence[Any]) -> Iterator[Any]:
    """The replies to many requests, some hundreds of which are on their way at a time."""
    for at in range(0, len(requests), AT_A_TIME):
        some = requests[at : at + AT_A_TIME]
        for request in some:
            wire.say(name, version, request)
        for _ in some:
            yield wire.reply(name, version)


def renewers(count: int, length: int = 1) -> list[Any]:
    return [Create.CreatableRenewers(principal_type="User", principal_name=f"{n:0{length}}") for n in range(count)]


@attack(
    lab=True,
    quick=True,
    memory_mib_max=40,
    settings={**SECURED, "ottla.delegation.tokens.per.owner.max": 100, "ottla.delegation.token.renewers.max": 10},
)
def more_tokens_than_an_owner_may_have(site: Site) -> None:
    """And tokens with too many renewers, or too long ones."""
    with logged_in(site) as wire:
        made = list(asked(wire, "CreateDelegationToken", 3, [Create(renewers=renewers(10))] * (100 + MORE)))
        assert [one.error_code for one in made] == [0] * 100 + [Errors.POLICY_VIOLATION] * MORE
        assert len(wire.ask("DescribeDelegationToken", 3, Describe(owners=None)).tokens) == 100
        gone = m.ExpireDelegationTokenRequest(hmac=made[0].hmac, expiry_time_period_ms=-1)
        assert wire.ask("ExpireDelegationToken", 2, gone).error_code == 0
        for wrong in (renewers(11), renewers(10, 30_000)):
            assert wire.ask("CreateDelegationToken", 3, Create(renewers=wrong)).error_code == Errors.POLICY_VIOLATION
        assert wire.ask("CreateDelegationToken", 3, Create()).error_code == 0, "one made room"
    assert reached(site, "delegation-tokens-per-owner") == MORE
    assert reached(site, "delegation-token-renewers") == 2
    assert reached(site, "created-per-request") == 0
    assert 'ottla_limit_used{limit="delegation-tokens-per-owner"} 100.0' in lab_text(site.broker, "/metrics")


@attack(memory_mib_max=100, settings={**SECURED, "delegation.token.expiry.check.interval.ms": 1000})
def a_hundred_thousand_tokens(site: Site) -> None:
    """As many as there may be are made, described with all filters, and expired: half of them by requests, and half by
    the check.
    """
    with logged_in(site) as wire:
        owners = [f"owner-{n}" for n in range(50)]
        alice = Create.CreatableRenewers(principal_type="User", principal_name="alice")
        requests = [
            Create(owner_principal_type="User", owner_principal_name=one, renewers=[alice, *renewers(19)])
            for one in owners
        ]
        made = list(asked(wire, "CreateDelegationToken", 3, requests * (REQUESTS // len(owners))))
        assert [one.error_code for one in made] == [0] * ROOM + [Errors.POLICY_VIOLATION] * (REQUESTS - ROOM)
        owner = Describe.DescribeDelegationTokenOwner
        others = [owner(principal_type="User", principal_name=f"nobody-{n}") for n in range(9_000)]
        renewer = [*others, owner(principal_type="User", principal_name="alice")]
        for filtered, found in ((None, ROOM), (renewer, ROOM), (others, 0), ([], 0)):
            assert len(wire.ask("DescribeDelegationToken", 3, Describe(owners=filtered)).tokens) == found
        expire = m.ExpireDelegationTokenRequest
        periods = ((one.hmac, -1 if n % 2 else 0) for n, one in enumerate(made[:ROOM]))
        ends = [expire(hmac=hmac, expiry_time_period_ms=period) for hmac, period in periods]
        assert {one.error_code for one in asked(wire, "ExpireDelegationToken", 2, ends)} == {0}
        until(
            lambda: not wire.ask("DescribeDelegationToken", 3, Describe(owners=None)).tokens,
            "the expired tokens are removed",
            within=60,
            every=0.1,
        )
