"""Shards, as daemons hold, fetch and serve them."""
