"""Layers: a key that an owner shares with one of its ancestors lies on what it sends up.

Whoever asks for something itself puts on one layer for each of its m nearest ancestors. Each broker on the
way takes off the one that is for it, and puts on its own for its m-th ancestor, or for the root if that is
nearer. So whatever goes up has m layers (fewer where the root is nearer) until the root takes off the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from hushcast_protocol.base.wire import Counter, PublicKey, Wire

MIN_LAYERS = 2
MAX_LAYERS = 4  # each more costs a node a key for every descendant another level down


class Layer(Wire, frozen=True, tag="layer"):
    """Whose key it is, and who takes it off: the X25519 keys that they are known by."""

    owner: PublicKey
    target: PublicKey


class NumberedLayer(Wire, frozen=True, tag="numbered-layer"):
    """The same as published, with a key that is on one item alone: the pair's, updated to this number."""

    owner: PublicKey
    target: PublicKey
    number: Counter


AnyLayer = Layer | NumberedLayer
LayerPath = tuple[AnyLayer, ...]
"""Layers as they are left at a broker, in order; two things under one path have one key on them."""


def layer_of(owner: PublicKey, target: PublicKey, number: int | None) -> AnyLayer:
    """Return a layer; with a number where its key is for one item."""
    return Layer(owner, target) if number is None else NumberedLayer(owner, target, number)


def in_order(layers: Iterable[AnyLayer]) -> LayerPath:
    """Return layers in the one order that they travel in."""
    return tuple(sorted(layers, key=_place))


def are_in_order(layers: Sequence[AnyLayer]) -> bool:
    """Tell whether they are, none of them twice."""
    return all(_place(one) < _place(other) for one, other in pairwise(layers))


def own_layers(
    own: PublicKey, above: Sequence[PublicKey], layers: int, number: int | None = None
) -> LayerPath:
    """Return the layers of what a node asks for itself; `above` are its ancestors, the parent first."""
    return in_order(layer_of(own, target, number) for target in above[:layers])


def onward_target(above: Sequence[PublicKey], layers: int) -> PublicKey:
    """Return whom a broker puts a layer on for; it has a parent."""
    return above[min(layers, len(above)) - 1]


def are_left_for(path: LayerPath, above: Sequence[PublicKey], layers: int) -> bool:
    """Tell whether these are what a broker may find once its own layer is off.

    There is one for each of its `layers` - 1 nearest ancestors, and for the root perhaps more. Of the root
    itself, `above` is empty, and none is left.
    """
    targets = [one.target for one in path]
    expected = list(above[: layers - 1])
    if above and len(expected) == len(above):
        expected += [above[-1]] * (min(len(targets), layers - 1) - len(expected))
    return sorted(targets) == sorted(expected)


def _place(layer: AnyLayer) -> tuple[bytes, bytes]:
    return layer.target, layer.owner
