"""Between the classic and the consumer protocol: groups that change their kind, classic members of consumer groups."""
