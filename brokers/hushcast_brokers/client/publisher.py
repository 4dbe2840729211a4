"""The publisher: hands a message to the root, over a circuit that nothing else goes over; probes, too."""

from __future__ import annotations

from collections.abc import Callable, Collection

import trio

from hushcast_brokers.client.community.membership import Membership
from hushcast_brokers.tree_request import BrokerContact
from hushcast_protocol.base.crypto.proof_of_work import ProofOfWork, mint
from hushcast_protocol.base.errors import DecodeError, PeerError, Refusal
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.brokers.frames import (
    MAX_BROKER_FRAME,
    FromAbove,
    Publish,
    Receipt,
    decode_from_above,
)
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_protocol.content.messages import Message
from hushcast_runtime.carriers.carrier import Handover
from hushcast_runtime.carriers.contact import Contact
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log
from hushcast_runtime.transports.base import Transport, TransportError
from hushcast_runtime.transports.channel import Channel, open_channel

_NOBODY = (
    "the root knows nobody in this daemon's community: nobody subscribes there now, and the root is not in it"
    " (`hushcast admin community admit` takes its key)"
)


class BrokersPublisher:
    """Hands over the messages of one daemon."""

    def __init__(
        self,
        network: BrokersNetwork,
        root: Callable[[], BrokerContact],
        transport: Transport,
        contact: Contact,
        membership: Membership | None,
        context: Context,
    ) -> None:
        """`contact` is this daemon's to the root.

        `membership` is this daemon's part in a network of communities.
        """
        self._network = network
        self._root = root
        self._transport = transport
        self._contact = contact
        self._membership = membership
        self._env = context.env
        self._counters = context.counters
        self._difficulty = 0  # bits that the root last asked for
        # One after the other: they would only take the interpreter from each other.
        self._minting = trio.Lock()

    async def hand_over(self, message: Message, handover: Handover, taken: Collection[bytes] = ()) -> None:
        """Hand a message to the root unless it has `taken` it."""
        root = self._network.root
        if root in taken:
            return
        manner = self._root().manner
        for attempt in range(manner.attempts):
            if attempt:
                await trio.sleep(self._env.uniform(0.0, manner.longest_delay))
            handover.note_try(root)
            try:
                await self._publish(message)
            except (TransportError, PeerError, Refusal) as error:
                if not isinstance(error, Refusal):
                    self._contact.note(worked=False)
                log.info("no receipt came", reason=str(error))
                handover.note_failure(f"no receipt came: {error}")
            else:
                handover.note_receipt(root)
                return

    async def _publish(self, message: Message) -> None:
        """Hand it over once; raise a reason unless there is a receipt."""
        root = self._root()
        if self._membership is not None:
            message = await self._membership.sealed(message, root)
        stamp = await self._stamp(message)
        # No view: what this daemon holds of the tree would tell it from others.
        link = Link.initiate(
            self._network.id, root.key, self._env.randomness, MAX_BROKER_FRAME, wire=root.spoken()
        )
        try:
            channel, _ = await open_channel(
                self._transport, root.address, self._env.isolation(), link, decode_from_above
            )
        except (PeerError, TransportError):
            self._counters.add("links_failed")
            raise
        self._counters.add("links_opened")
        try:
            verdict = await self._asked(channel, Publish(message, stamp))
            if verdict == "stamp":
                verdict = await self._asked(channel, Publish(message, await self._stamp(message)))
        finally:
            await channel.aclose()
        if verdict == "community" and self._membership is not None:
            self._membership.doubt()
            raise Refusal(_NOBODY)
        if verdict != "accepted":
            raise Refusal(f"the root does not take the message: {verdict}")

    async def _asked(self, channel: Channel[FromAbove], publication: Publish) -> str:
        await channel.send(publication)
        receipt = await channel.one(self._root().manner.receipt_within)
        if not isinstance(receipt, Receipt):
            raise DecodeError("the root answered what nobody asked")
        self._contact.note(worked=True)
        self._difficulty = receipt.difficulty
        return receipt.verdict

    async def _stamp(self, message: Message) -> ProofOfWork | None:
        if not (difficulty := self._difficulty):
            return None
        epoch = self._network.calendar.epoch(self._env.now())
        async with self._minting:
            return await self._env.compute(
                mint, self._network.root, epoch, message.id, difficulty, self._env.randomness
            )
