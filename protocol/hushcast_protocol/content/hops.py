"""Hops: who a message waits for, as a byte of kind and a key or name of 32; carriers have their kinds."""

from __future__ import annotations

from typing import NewType

import msgspec

from hushcast_protocol.content.messages import Message

Hop = NewType("Hop", bytes)
"""33 bytes."""

HOP_SIZE = 33


class HopMessage(msgspec.Struct, frozen=True, gc=False):
    """A message for one next hop."""

    hop: Hop
    message: Message
