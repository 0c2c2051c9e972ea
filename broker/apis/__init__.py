"""One file per API key; the listing is the table of what is supported."""
