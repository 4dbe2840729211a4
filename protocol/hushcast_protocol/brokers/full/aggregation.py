"""Aggregation secrets: what a broker is given to compare items whose layers are not the same.

The paper gives a broker k(a,t) xor k(b,t) for each two of its children, where t is its parent. Here it gets
one factor a path, which turns the path into a key that is common to all paths of a broker and day and that
the broker does not know. Two factors give just what the paper's secret of two gives, and n do for n paths
what takes n(n-1)/2 secrets. A factor is two keys: one for words, one for what opens messages.

A broker asks upward. Each ancestor that layers of the path are for multiplies its share of the factor in,
blinded for the broker that asks, so that those on the way learn nothing; the last sends it back down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

import msgspec

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.key_agreement import shared_secret
from hushcast_protocol.base.crypto.secrets import Secret
from hushcast_protocol.base.errors import AuthenticationError, Refusal
from hushcast_protocol.base.wire import Bytes32, Counter, PublicKey, Wire
from hushcast_protocol.brokers.full.group_action import KEY_SEED, GroupAction
from hushcast_protocol.brokers.full.layer_keys import Keyring, LayerKeys
from hushcast_protocol.brokers.full.layers import (
    MAX_LAYERS,
    AnyLayer,
    LayerPath,
    NumberedLayer,
    are_in_order,
    are_left_for,
)


class AskFactors(Wire, frozen=True, tag="ask-factors"):
    """On its way up from a broker that asks, whose key in layers is `asker`: the shares so far, blinded."""

    serial: Counter
    day: Counter
    asker: PublicKey
    path: Annotated[tuple[AnyLayer, ...], msgspec.Meta(min_length=1, max_length=MAX_LAYERS - 1)]
    route: Bytes32
    content: Bytes32


class Factors(Wire, frozen=True, tag="factors"):
    """The answer to the `AskFactors` with this serial: all shares, blinded."""

    serial: Counter
    route: Bytes32
    content: Bytes32


def asking(action: GroupAction, own: PublicKey, serial: int, day: int, path: LayerPath) -> AskFactors:
    """Return the request of a broker for the factors of a path, with nobody's share in it yet."""
    nothing = action.product(()).reveal()
    return AskFactors(serial, day, own, path, nothing, nothing)


def check_asked(
    ask: AskFactors,
    above: Sequence[PublicKey],
    layers: int,
    own: PublicKey,
    is_listed: Callable[[PublicKey], bool],
) -> bool:
    """Return whether `own` is the last ancestor whose share the factors take.

    `above` are the ancestors of who asks, its parent first; `is_listed` tells of a key whether it is that of
    a broker that does not stand below who asks. Raises `Refusal`: `tree` where layers are not for the
    ancestors that it would have them for, `form` for what no honest broker asks: it would learn keys that it
    shares itself, and with them all others.
    """
    owners = {one.owner for one in ask.path}
    if not are_in_order(ask.path) or ask.asker in owners or any(map(is_listed, owners)):
        raise Refusal("form")
    targets = above[: layers - 1]
    if own not in targets or not are_left_for(ask.path, above, layers):
        raise Refusal("tree")
    return own == targets[-1]


def with_share(keys: Keyring, ask: AskFactors, serial: int) -> AskFactors:
    """Return a request, checked before, with this ancestor's share in it; raise `Refusal` (`form`)."""
    keys.check(ask.path)
    try:
        taken = [keys.on(one, ask.day) for one in ask.path if one.target == keys.public]
        common = _common(keys, ask.asker, ask.day)
        blind = _blind(keys, ask.asker, ask.asker, keys.public, ask.day, ask.path)
        return msgspec.structs.replace(
            ask,
            serial=serial,
            route=_shared(keys.action, ask.route, common.route, blind.route, [one.route for one in taken]),
            content=_shared(
                keys.action, ask.content, common.content, blind.content, [one.content for one in taken]
            ),
        )
    except AuthenticationError:
        raise Refusal("form") from None


def unblinded(
    keys: Keyring, above: Sequence[PublicKey], layers: int, day: int, path: LayerPath, answer: Factors
) -> LayerKeys:
    """Return the factors of a path, as the broker that asked uses them; `AuthenticationError` for none."""
    action = keys.action
    blinds = [_blind(keys, target, keys.public, target, day, path) for target in above[: layers - 1]]
    route = action.product(one.route for one in blinds)
    content = action.product(one.content for one in blinds)
    return LayerKeys(
        action.product((action.received(answer.route), action.inverse(route))),
        action.product((action.received(answer.content), action.inverse(content))),
    )


def _shared(
    action: GroupAction, before: bytes, common: Secret, blind: Secret, taken: Sequence[Secret]
) -> bytes:
    product = action.product((action.received(before), common, blind, *map(action.inverse, taken)))
    return product.reveal()


def _common(keys: Keyring, asker: PublicKey, day: int) -> LayerKeys:
    """Return this ancestor's part of what a broker's paths are turned to: known to it alone."""

    def seed(use: bytes) -> bytes:
        parts = (use, keys.network, day.to_bytes(8, "big"), asker)
        return digest(Domain.COMMON_KEY, *parts, key=keys.own.reveal(), size=KEY_SEED)

    return LayerKeys(keys.action.key(seed(b"route")), keys.action.key(seed(b"content")))


def _blind(
    keys: Keyring, other: PublicKey, asker: PublicKey, target: PublicKey, day: int, path: LayerPath
) -> LayerKeys:
    """Return what hides a target's share from all but who asks; a path has one, so it can be asked again."""
    secret = shared_secret(keys.own, other)
    parts = (keys.network, day.to_bytes(8, "big"), asker, target)
    layers = [part for one in path for part in (one.owner, one.target)]
    layers += [one.number.to_bytes(8, "big") for one in path if isinstance(one, NumberedLayer)]

    def seed(use: bytes) -> bytes:
        return digest(Domain.BLIND, use, *parts, *layers, key=secret, size=KEY_SEED)

    return LayerKeys(keys.action.key(seed(b"route")), keys.action.key(seed(b"content")))
