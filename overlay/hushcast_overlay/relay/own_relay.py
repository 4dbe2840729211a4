"""The own relay: what the peers of a relay need of its other parts, which in their turn send by the peers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from hushcast_overlay.relay.hop_places import HopPlaces
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.frame_directions import BetweenCover
from hushcast_protocol.overlay.frames import ParcelAnswer

TakeForwards = Callable[[list[Message], bytes], Awaitable[list[int]]]
"""Takes over messages from a previous hop; returns once they are spooled. Raises a `PeerError`.

Returns the places of those that nothing here routes when they come from there.
"""

TakeParcel = Callable[[bytes, bytes], Awaitable[ParcelAnswer]]
"""Carries out a sealed parcel from a previous hop; the answer's number is for the caller to set."""


TakeCover = Callable[[BetweenCover, RelayId], None]
"""Takes what a relay says for cover; raises a `PeerError` where no honest one says so."""


class OwnRelay(NamedTuple):
    """What the peers of a relay need of its other parts, which in their turn send by the peers."""

    places: HopPlaces
    take_forwards: TakeForwards
    take_hand_ins: TakeForwards
    take_parcel: TakeParcel
    take_cover: TakeCover
