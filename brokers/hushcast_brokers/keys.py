"""The long-lived keys of a broker, and of a daemon in a community, in its state directory."""

from __future__ import annotations

BROKER_KEYS = ("broker.key", "service.key")
"""Files, each with the seed of a key: the one proves the broker on links, the other is its address'."""

COMMUNITY_KEY = "community.key"
"""In the state directory of a daemon: the seed of the key that charters of communities admit it by."""
