"""The proxy of `ottla compare`: two brokers get what a client sends, and their replies are compared."""
