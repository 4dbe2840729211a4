"""Wires: what differs between releases, and how each is spoken."""
