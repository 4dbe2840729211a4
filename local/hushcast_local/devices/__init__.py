"""Devices of one person, as a daemon has them: planned subscriptions, and the circle."""
