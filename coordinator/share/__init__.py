"""Share groups: the share-partition engine, and the share coordinator that keeps its state (KIP-932)."""
