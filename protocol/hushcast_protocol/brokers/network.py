"""A network of brokers: a tree that its root signs, into which messages enter at the root."""

from __future__ import annotations

from typing import Literal

from hushcast_protocol.base.roster import Network
from hushcast_protocol.base.wire import PublicKey

Privacy = Literal["clear"]
"""What brokers may learn; the network's `profile`. `clear`: conditions, values, open topics if guessed."""


class BrokersNetwork(Network, frozen=True, tag="brokers-network/1"):
    """What all daemons of a network share. Brokers may come and go; the root stays."""

    root: PublicKey
    """The Ed25519 key that proves the root on links, and signs the tree."""
