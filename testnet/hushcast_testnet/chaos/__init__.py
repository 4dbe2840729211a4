"""Chaos: fault injection and traffic on a running testnet, and a verdict on the messages."""
