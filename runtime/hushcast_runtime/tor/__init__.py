"""Tor as this daemon uses it: a control connection, a SOCKS door, and onion services of its own."""
