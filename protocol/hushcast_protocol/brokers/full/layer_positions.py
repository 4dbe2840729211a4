"""Where brokers stand, by the keys that layers name, which are made of those by which the tree lists them."""

from __future__ import annotations

from hushcast_protocol.base.crypto.key_agreement import agreement_public
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.broker_tree import BrokerTree


class LayerPositions:
    """One tree's brokers."""

    def __init__(self, tree: BrokerTree) -> None:
        """Raise `AuthenticationError` where a broker's key is not in the group."""
        self._tree = tree
        self._by_seat = {seat: agreement_public(seat) for seat in tree.brokers}
        self._seats = {key: seat for seat, key in self._by_seat.items()}

    def key(self, seat: PublicKey) -> PublicKey:
        """Return the key that a broker of the tree has in layers."""
        return self._by_seat[seat]

    def seat(self, key: PublicKey) -> PublicKey | None:
        """Return the broker that has this key in layers; none where it is a client's, or nobody's."""
        return self._seats.get(key)

    def above(self, seat: PublicKey) -> tuple[PublicKey, ...]:
        """Return the keys of a broker's ancestors, its parent's first; the root has none."""
        return tuple(self._by_seat[broker.key] for broker in self._tree.above(seat))

    def seats_above(self, seat: PublicKey) -> tuple[PublicKey, ...]:
        """Return the seats of a broker's ancestors, its parent's first; none where the tree lacks it."""
        if seat not in self._by_seat:
            return ()
        return tuple(broker.key for broker in self._tree.above(seat))

    def above_client(self, edge: PublicKey) -> tuple[PublicKey, ...]:
        """Return the keys of the ancestors of a client of this broker, the broker's own first."""
        return (self._by_seat[edge], *self.above(edge))
