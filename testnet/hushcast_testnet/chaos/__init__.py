"""Chaos: a running testnet under faults and traffic, and a verdict on what became of the messages."""
