"""Passwords as Kafka keeps them in ZooKeeper."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ottla.broker.zookeeper.passwords import Passwords, Sealed, Sealing, opened, sealed

from ..support.sources import ROOT

RECORDED: dict[str, Any] = json.loads((ROOT / "tests/oracle/recorded/zookeeper_entities.json").read_text())
SECRET = "encoder"  # with which the tools of these Kafkas encrypted `hidden`
BY_KAFKA_WITH_GCM = (
    "encryptedPassword:vANx2qVfkMqdsv5LB3twRo4/3hPT/S+I,keyLength:128,cipherAlgorithm:AES/GCM/NoPadding,"
    "initializationVector:8DjGpKy+8d1efMHk,keyFactoryAlgorithm:PBKDF2WithHmacSHA512,passwordLength:5,"
    "authenticationTagLength:128,salt:yqWQgJATQBSOLTXmTVqNDNd+GFTSKX+xAfx9pHbsucNkfm5OiPyiCogH9paBEo/SxQKz+WVgZ4TSOZhB"
    "A1cxPXvCpia0ignIuwwKmr1t6tDE37nukMCjGOcD84G+r1+Yv1oWyhZe/VMqDRTZnAUfu8b/DGFngQSguRaq84dliYTXcHsdvIjhO34WHZYlR+7G"
    "XcFwscrv5MNMDuuv5b11Y3UyA4Jtkg9FGk72FMJ4mMtDZ6FBgBi1mUjtGQ6HhD2MAXMD7ajdb+2tgleFd6WJK3fgRX6+u8rJY36U7bOuFIJtf94E"
    "H/xTwvHGWuSiuL054N1Drl2kfH/iyKrRcxyjWg==,iterations:2048"
)
CBC = Sealing("AES/CBC/PKCS5Padding", 128, "PBKDF2WithHmacSHA512", 1024)
GCM = Sealing("AES/GCM/NoPadding", 256, "PBKDF2WithHmacSHA1", 1024)


def by_kafka(version: str) -> str:
    node = json.loads(RECORDED[version]["nodes"]["/config/brokers/1"])
    text: str = node["config"]["listener.name.other.ssl.key.password"]
    return text


@pytest.mark.parametrize("version", ["2.8.2", "3.9.1"])
def test_what_kafka_has_encrypted_is_opened(version: str) -> None:
    assert opened(by_kafka(version), SECRET) == "hidden"


def test_so_is_what_it_has_encrypted_with_gcm() -> None:
    assert opened(BY_KAFKA_WITH_GCM, SECRET) == "hé \U0001f600"


@pytest.mark.parametrize("how", [CBC, GCM])
@pytest.mark.parametrize("password", ["", "secret", "hé \U0001f600,:x" * 20])
def test_what_is_sealed_is_opened_with_the_same_secret_only(how: Sealing, password: str) -> None:
    made = sealed(password, SECRET, how)
    assert opened(made, SECRET) == password
    assert sealed(password, SECRET, how) != made  # it is salted
    with pytest.raises(Sealed):
        opened(made, "another")


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("iterations:2048", "iterations:2000000000"),
        ("iterations:2048", "iterations:0"),
        ("iterations:2048", "iterations:-1"),
        ("iterations:2048", "iterations:x"),
        ("passwordLength:5", "passwordLength:6"),
        ("keyLength:128", "keyLength:127"),
        ("AES/GCM/NoPadding", "DES/CBC/PKCS5Padding"),
        ("PBKDF2WithHmacSHA512", "MD5"),
        ("salt:y", "salt:*"),
        ("initializationVector:8DjGpKy+8d1efMHk", "initializationVector:"),
        ("encryptedPassword:v", "encryptedPassword:w"),
        ("encryptedPassword:", "password:"),
        (BY_KAFKA_WITH_GCM, "junk"),
        (BY_KAFKA_WITH_GCM, ""),
    ],
)
def test_what_lies_is_not_opened(was: str, becomes: str) -> None:
    assert was in BY_KAFKA_WITH_GCM
    with pytest.raises(Sealed):
        opened(BY_KAFKA_WITH_GCM.replace(was, becomes), SECRET)


def test_an_earlier_secret_opens_what_it_has_sealed() -> None:
    passwords = Passwords(CBC, "new", SECRET)
    old = by_kafka("2.8.2")
    assert passwords.opened(old) is None  # it takes time, and was not done yet
    passwords.learn([old, "junk"])
    assert passwords.opened(old) == "hidden"
    assert not passwords.is_current(old)
    made = passwords.sealed("hidden")
    assert passwords.is_current(made)
    assert opened(made, "new") == passwords.opened(made) == "hidden"
    assert passwords.opened("junk") is None
