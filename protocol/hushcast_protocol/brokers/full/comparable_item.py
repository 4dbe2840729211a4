"""What a broker reads of an item: its own layers taken off, those that are left checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hushcast_protocol.base.errors import AuthenticationError, Refusal
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.full.layer_keys import Keyring
from hushcast_protocol.brokers.full.layered_word import LayeredWord
from hushcast_protocol.brokers.full.layers import LayerPath, are_in_order, are_left_for


@dataclass(frozen=True, slots=True)
class ComparableItem:
    """An item of a child, as the broker compares it."""

    item: LayeredWord
    name: bytes
    own: LayerPath
    """The layers that were the broker's: one, but at the root."""
    path: LayerPath
    """The layers that are left; none at the root."""
    element: bytes
    """What is under these."""


def read_item(keys: Keyring, above: Sequence[PublicKey], layers: int, item: LayeredWord) -> ComparableItem:
    """Take a broker's own layers off; `above` are its ancestors, the parent first.

    Raises `Refusal`: `form` for what no honest child sends, `tree` where layers are not for the brokers that
    stand above here: its sender holds another tree.
    """
    own, path = check_layers(keys.public, above, layers, item)
    keys.check(item.layers)
    try:
        for owner in {one.owner for one in path}:
            keys.shared(owner, item.day)  # that is no key is refused here: above, it would be this broker's
        shared = [keys.on(one, item.day).route for one in own]
        element = keys.action.strip(keys.action.product(shared), item.element)
    except AuthenticationError:
        raise Refusal("form") from None
    return ComparableItem(item, item.name, own, path, element)


def check_layers(
    own: PublicKey, above: Sequence[PublicKey], layers: int, item: LayeredWord
) -> tuple[LayerPath, LayerPath]:
    """Return the layers that are a broker's own, and what is left; raises as `read_item`."""
    mine = tuple(one for one in item.layers if one.target == own)
    path = tuple(one for one in item.layers if one.target != own)
    if not are_in_order(item.layers) or any(one.owner == own or one.owner in above for one in item.layers):
        raise Refusal("form")
    if not mine or (above and len(mine) > 1) or len(item.layers) > layers:
        raise Refusal("tree")
    if not are_left_for(path, above, layers):
        raise Refusal("tree")
    return mine, path
