"""Converts bytes to messages and back: schemas, codec, record batches, frames. Imports no other package of ottla."""
