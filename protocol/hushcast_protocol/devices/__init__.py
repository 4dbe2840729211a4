"""Devices of one person: what they share, and how links are carried from one to another."""
