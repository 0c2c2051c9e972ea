"""Attacks: programs that try to stop, end or confuse a broker, each with its bounds. `make attack`.

One module per area; each function marked with `@attack` is one attack. `harness` starts the broker, watches its loop
and its memory from outside, and says afterwards whether it is well and still has what it acknowledged.
"""
