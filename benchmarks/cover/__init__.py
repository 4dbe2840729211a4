"""Daemons under cover, watched at their lines."""
