"""Clients that do not authenticate, do so halfway, or try passwords."""

from __future__ import annotations

from ottla.protocol import messages as m

from ..support.secured import SETTINGS, second_listener
from ..support.wire import Wire
from .harness import Site, attack, refused

SECURED = {**SETTINGS, "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"}
TOKEN_BYTES = 520_000  # the limit is 512 KiB with the header


def handshake(wire: Wire, mechanism: str = "PLAIN") -> m.SaslHandshakeResponse:
    reply: m.SaslHandshakeResponse = wire.ask("SaslHandshake", 1, m.SaslHandshakeRequest(mechanism=mechanism))
    return reply


def say_token(wire: Wire, token: bytes) -> None:
    wire.say("SaslAuthenticate", 2, m.SaslAuthenticateRequest(auth_bytes=token))


@attack(quick=True, settings=SECURED)
def ten_thousand_handshakes(site: Site) -> None:
    """Each on a connection of its own, which leaves without a token."""
    servers = second_listener(site.broker)
    for _ in range(50):
        wires = [Wire(servers) for _ in range(200)]
        for wire in wires:
            wire.say("SaslHandshake", 1, m.SaslHandshakeRequest(mechanism="SCRAM-SHA-512"))
        for wire in wires:
            wire.close()


@attack(quick=True, settings=SECURED)
def five_hundred_half_exchanges(site: Site) -> None:
    """Their first message is for a user that does not exist, and for half a token of the longest."""
    servers = second_listener(site.broker)
    wires = [Wire(servers) for _ in range(500)]
    for wire in wires:
        handshake(wire, "SCRAM-SHA-256")
        wire.send(TOKEN_BYTES.to_bytes(4, "big") + bytes(TOKEN_BYTES // 8))
    for wire in wires:
        wire.close()


@attack(quick=True, settings=SECURED)
def five_thousand_wrong_passwords(site: Site) -> None:
    """A thousand connections wait for their answers at a time, and half of them leave before."""
    servers = second_listener(site.broker)
    for _ in range(5):
        wires = [Wire(servers) for _ in range(1000)]
        for wire in wires:
            wire.say("SaslHandshake", 1, m.SaslHandshakeRequest(mechanism="PLAIN"))
            say_token(wire, b"\0alice\0guessed")
        for wire in wires[::2]:
            wire.close()
        for wire in wires[1::2]:
            wire.reply("SaslHandshake", 1)
            assert wire.reply("SaslAuthenticate", 2).error_code == 58
            wire.close()


@attack(quick=True, settings=SECURED)
def the_longest_tokens(site: Site) -> None:
    """Tokens for which a careless parser needs more than one look at each byte."""
    servers = second_listener(site.broker)
    scram = [
        b"n,,n=" + b"u" * TOKEN_BYTES,
        b"n,,n=" + b"=2C" * (TOKEN_BYTES // 3) + b"=",
        b"n,,n=u,r=x" + b",a=b" * (TOKEN_BYTES // 4) + b",",
        b"n,a=" + b"=3D" * (TOKEN_BYTES // 3),
        b"n,,m=" + b"=" * TOKEN_BYTES,
    ]
    for mechanism, tokens in (("PLAIN", [bytes(TOKEN_BYTES), b"\xf0" * TOKEN_BYTES]), ("SCRAM-SHA-256", scram)):
        for token in tokens:
            with Wire(servers) as wire:
                handshake(wire, mechanism)
                say_token(wire, token)
                assert wire.reply("SaslAuthenticate", 2).error_code == 58


@attack(quick=True, settings=SECURED)
def a_token_above_the_limit(site: Site) -> None:
    """Its length alone ends the connection."""
    with Wire(second_listener(site.broker)) as wire, refused():
        handshake(wire)
        wire.send((1 << 20).to_bytes(4, "big") + b"\0\x24\0\2")
        wire.read(1)
        raise AssertionError("the connection lives")


@attack(quick=True, settings=SECURED)
def handshakes_of_a_client_that_is_in(site: Site) -> None:
    """Twenty thousand, which are refused one by one."""
    with Wire(second_listener(site.broker)) as wire:
        handshake(wire)
        say_token(wire, b"\0alice\0alice-secret")
        assert wire.reply("SaslAuthenticate", 2).error_code == 0
        for _ in range(200):
            for _ in range(100):
                wire.say("SaslHandshake", 1, m.SaslHandshakeRequest(mechanism="PLAIN"))
            for _ in range(100):
                assert wire.reply("SaslHandshake", 1).error_code == 34
