"""Records: read by offset, time or key, decoded where a topic is internal, and written."""
