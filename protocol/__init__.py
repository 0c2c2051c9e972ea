"""Bytes to messages and back: schemas, codec, record batches, frames. Imports nothing of ours."""
