"""The broker's configuration: keys and their sources, checks at start and of dynamic changes, keys without effect, the
table of all keys.
"""
