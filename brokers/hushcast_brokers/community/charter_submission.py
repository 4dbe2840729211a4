"""Submission of a charter to the root, over a link without a name."""

from __future__ import annotations

import trio

from hushcast_brokers.tree_request import ANSWER_WITHIN, BrokerContact
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.brokers.frames import (
    MAX_BROKER_FRAME,
    BrokerVerdict,
    NewCharter,
    Receipt,
    decode_from_above,
)
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_runtime.environment import Environment
from hushcast_runtime.transports.base import Transport, TransportError
from hushcast_runtime.transports.channel import open_channel


async def hand_in(
    network: BrokersNetwork, root: BrokerContact, signed: Signed, transport: Transport, env: Environment
) -> BrokerVerdict:
    """Return the root's verdict on a charter. Raises `PeerError` or `TransportError`."""
    link = Link.initiate(network.id, root.key, env.randomness, MAX_BROKER_FRAME)
    channel, _ = await open_channel(transport, root.address, env.isolation(), link, decode_from_above)
    try:
        with trio.move_on_after(ANSWER_WITHIN):
            await channel.send(NewCharter(signed))
            receipt = await channel.one(ANSWER_WITHIN)
            if not isinstance(receipt, Receipt):
                raise DecodeError("the root answered what nobody asked")
            return receipt.verdict
    finally:
        await channel.aclose()
    raise TransportError("the root did not answer in time")
