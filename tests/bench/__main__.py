"""`python -m tests.bench`: see `tests.bench.broker`."""

from __future__ import annotations

import sys

from .broker import main

sys.exit(main(sys.argv[1:]))
