"""A network of brokers: a tree that its root signs, into which messages enter at the root."""

from __future__ import annotations

from hushcast_protocol.base.roster import Network
from hushcast_protocol.base.wire import PublicKey


class BrokersNetwork(Network, frozen=True, tag="brokers-network/1"):
    """What all daemons of a network share. Brokers may come and go; the root stays.

    The profile is what brokers may learn (`privacy.read_privacy`).
    """

    root: PublicKey
    """The Ed25519 key that proves the root on links, and signs the tree."""
