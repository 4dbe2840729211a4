"""Neighbours: the roster of one shard in an epoch, from its slice, the epoch's leaf and the head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hushcast_protocol.base.crypto.proof_of_work import MAX_DIFFICULTY
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.base.roster import Relay, Roster
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.shards.slices import AWAY, Leaf


def roster_of_shard(seated: Mapping[RelayId, Relay], leaf: Leaf, head: Roster, last: Roster | None) -> Roster:
    """Return who of a shard is there in the epoch of a head, as a roster of that epoch.

    `seated` are the relays of the slice that the leaf names, in its order; the leaf was checked against the
    head. `last` is the shard's roster of an earlier epoch, if one is known: a relay that was away then is
    listed since this epoch, as after any gap. Raises `DecodeError` for a leaf that does not fit.
    """
    if len(leaf.standing) != len(seated):
        raise DecodeError("a leaf does not say of each relay of its slice how it stands")
    relays: dict[RelayId, Relay] = {}
    for relay, standing in zip(seated.values(), leaf.standing, strict=True):
        if standing == AWAY:
            continue
        if standing > MAX_DIFFICULTY:
            raise DecodeError("a leaf says of a relay what none can be")
        before = relay if last is None else last.relays.get(relay.id)
        since = before.since if before is not None else head.epoch
        if before is not None and before.difficulty == standing:
            relays[relay.id] = before  # the same value for all epochs: there are hundreds in each
        else:
            relays[relay.id] = replace(relay, since=since, difficulty=standing)
    return Roster(head.network, head.epoch, head.previous, head.digest, relays)


def check_same_slice(held: Leaf, leaf: Leaf) -> None:
    """Raise `AuthenticationError` where a leaf names another slice than an earlier one of its shard."""
    if leaf.slice != held.slice:
        raise AuthenticationError("authorities agreed on two slices of one shard and day")
