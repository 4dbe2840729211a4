"""Tomography: a trusted service tells brokers how anonymous a filter is on the way between two of them."""
