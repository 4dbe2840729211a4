"""Demonstrations: what a testnet shows its user, from the first subscription to the last message."""
