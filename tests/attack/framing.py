"""Frames that are too large, too short, or never complete."""

from __future__ import annotations

from .harness import Site, attack, refused


@attack(quick=True)
def frames_that_announce_more_than_they_are(site: Site) -> None:
    """A thousand connections that announce 4 MiB each and send eight bytes."""
    wires = [site.wire() for _ in range(500)]
    for wire in wires:
        wire.send((4 << 20).to_bytes(4, "big") + b"\0\x03\0\x0c\0\0\0\x01")
    for wire in wires:
        wire.close()


@attack(quick=True)
def a_frame_of_two_gigabytes(site: Site) -> None:
    """Its length alone ends the connection."""
    with site.wire() as wire, refused():
        wire.send(b"\x7f\xff\xff\xff")
        wire.read(1)
        raise AssertionError("the connection lives")
