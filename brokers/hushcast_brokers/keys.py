"""The long-lived keys of a broker, in its state directory."""

from __future__ import annotations

BROKER_KEYS = ("broker.key", "service.key")
"""Files, each with the seed of a key: the one proves the broker on links, the other is its address'."""
