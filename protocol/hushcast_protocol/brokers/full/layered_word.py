"""Layered words: what a child asks of its parent, under layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec

from hushcast_protocol.base.crypto.hashes import LABEL, Domain, digest
from hushcast_protocol.base.wire import Bytes32, Counter, Wire, decoder, encode
from hushcast_protocol.brokers.full.layers import MAX_LAYERS, AnyLayer


class LayeredWord(Wire, frozen=True, tag="layered"):
    """A word of one day as its parent's child shows it; the layers are in order (`layers.in_order`)."""

    day: Counter
    element: Bytes32
    layers: Annotated[tuple[AnyLayer, ...], msgspec.Meta(min_length=1, max_length=MAX_LAYERS)]

    @property
    def name(self) -> bytes:
        """16 bytes that name it on its link, up and down."""
        return digest(Domain.LAYERED, encode(self), size=LABEL)


_LARGEST = 4096  # bytes; its layers are four at most

decode_layered: Callable[[bytes], LayeredWord] = decoder(LayeredWord, "item", _LARGEST)
