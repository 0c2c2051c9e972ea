"""TLS of listeners: keys and certificates, contexts of OpenSSL, and the principals of clients' certificates."""
