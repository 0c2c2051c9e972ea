"""Committed offsets: where they are kept, and what requests do with them."""
