"""Who asks for something itself: what it shows its parent, and how it opens what comes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hushcast_protocol.base.crypto.secrets import Secret
from hushcast_protocol.base.errors import AuthenticationError
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.full.item_labels import ItemLabel, read_labels
from hushcast_protocol.brokers.full.layer_keys import Keyring
from hushcast_protocol.brokers.full.layered_word import LayeredWord
from hushcast_protocol.brokers.full.layers import LayerPath, own_layers
from hushcast_protocol.brokers.full.outer_message import streamed
from hushcast_protocol.content.messages import Message


class WordHolder:
    """One node's own words of one day, under its own layers."""

    def __init__(self, keys: Keyring, above: Sequence[PublicKey], layers: int, day: int) -> None:
        """`above` are the keys of its ancestors, its parent's first.

        Raises `AuthenticationError` where one of these is none.
        """
        self.day = day
        self._action = keys.action
        self._above = tuple(above)
        self._count = layers
        self._keys = keys
        self._made = self._layers(own_layers(keys.public, above, layers))
        self._asked: dict[bytes, tuple[bytes, LayeredWord]] = {}

    def item(self, word: bytes) -> LayeredWord:
        """Return what asks for a word, a token of this day; what comes for it is opened from now on."""
        number = self._keys.number(self.day.to_bytes(8, "big"), word)
        layers, route = self._made
        if number is not None:
            layers, route = self._layers(own_layers(self._keys.public, self._above, self._count, number))
        element = self._action.wrap(route, self._action.element(word))
        item = LayeredWord(self.day, element, layers)
        self._asked[item.name] = word, item
        return item

    def _layers(self, layers: LayerPath) -> tuple[LayerPath, Secret]:
        """Return layers with the key that puts them all on."""
        return layers, self._action.product(self._keys.on(one, self.day).route for one in layers)

    def forget(self, name: bytes) -> None:
        """Open what comes under an item's name no more."""
        del self._asked[name]

    def open(self, message: Message) -> Message:
        """Return the message that is inside; its tokens are those words that it came for.

        Raises `DecodeError` or `AuthenticationError` where none of its labels is of an item here. A label
        that was tampered with shows when the body does not open.
        """
        labels = [label for label in read_labels(message.tokens) if label.name in self._asked]
        if not labels:
            raise AuthenticationError("a message has no label of what was asked for")
        _, item = self._asked[labels[0].name]
        inside = opened(self._keys, item, labels[0], message)
        return msgspec.structs.replace(inside, tokens=tuple(self._asked[one.name][0] for one in labels))


def opened(keys: Keyring, item: LayeredWord, label: ItemLabel, message: Message) -> Message:
    """Return what is inside a message that came under the label of one's own item; its tokens stay.

    Raises `AuthenticationError` where what the label has beside the name is no element.
    """
    shared = [keys.on(layer, item.day).content for layer in item.layers]
    return streamed(keys.action.strip(keys.action.product(shared), label.content), message)
