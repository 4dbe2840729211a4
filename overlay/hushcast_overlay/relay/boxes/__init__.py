"""Boxes: what a relay, as their host, keeps for owners whom it does not know."""
