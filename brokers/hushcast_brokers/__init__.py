"""Brokers: a tree that routes by content, as a carrier, and the broker itself."""
