"""Tor as this daemon uses it: a control connection, a SOCKS port, and onion services of its own."""
