"""The transaction coordinator: transactional ids, their producers and transactions (KIP-98, KIP-360, KIP-890)."""
