"""Principals of certificates are those that Java and Kafka make of them."""

from __future__ import annotations

import pytest
from ottla.broker.tls import der
from ottla.broker.tls.names import NoMatchingRule, PrincipalMapper, name

from ..oracle.principal_cases import Case, cases, recorded


def answer(case: Case) -> str | None:
    """What ottla makes of a case; None for an error."""
    try:
        if "name" in case:
            return name(bytes.fromhex(case["name"]))
        return PrincipalMapper(case["rules"]).principal(case["subject"])
    except (NoMatchingRule, ValueError):
        return None


def test_subjects_and_principals_are_javas_and_kafkas() -> None:
    wrong = [
        (case, kafka, ours)
        for case, kafka in zip(cases(), recorded(), strict=True)
        if (ours := answer(case)) != kafka.get("is")
    ]
    assert wrong == []


@pytest.mark.parametrize("data", [b"", b"\x30", b"\x30\x05\x00", b"\x30\x84\xff\xff\xff\xff", b"\x30\x80", b"\x31\x00"])
def test_what_is_not_der_is_an_error(data: bytes) -> None:
    with pytest.raises(der.DerError):
        name(data)
