"""Client quotas: which limit applies to whom, measured rates, and how long a client above its limit must wait."""
