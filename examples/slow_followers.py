"""How long a producer with acks=all waits, under three policies of the high watermark."""

import json
import time
import urllib.request

from kafka import KafkaProducer

from ottla.testing import Broker


def set_policy(broker: Broker, topic: str, policy: str) -> None:
    body = json.dumps({"topic": topic, "policy": policy}).encode()
    request = urllib.request.Request(f"{broker.lab_url}/v1/policy", body, {"Content-Type": "application/json"})
    urllib.request.urlopen(request, timeout=10).close()


with Broker() as broker:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, acks="all")
    producer.send("orders", b"warm up").get(timeout=10)
    for policy in ("immediate", "lag=50ms", "lag=200ms"):
        set_policy(broker, "orders", policy)
        began = time.perf_counter()
        producer.send("orders", b"order").get(timeout=10)
        print(f"{policy}: {(time.perf_counter() - began) * 1000:.0f} ms")
    producer.close()
