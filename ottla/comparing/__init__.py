"""Two brokers compared: which ids stand for which, where two replies differ, and what may differ. Pure: no I/O."""
