"""The acknowledge types of share group members (Kafka's `AcknowledgeType`)."""

from __future__ import annotations

GAP = 0  # there is no record at this offset: compaction removed it, or it is a control record
ACCEPT = 1
RELEASE = 2
REJECT = 3
RENEW = 4  # the member needs more time: the acquisition lock is renewed (KIP-1222)
