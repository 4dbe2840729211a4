"""Deliveries: what waits for pseudonyms, sent to those that are attached until it is acknowledged.

A next hop is a pseudonym, and a link to it is an attachment, which this end never opens. There is a machine
(`base/link/hop.py`) for as long as there is an attachment; without one all waits in the spool alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial

import trio

from hushcast_central.server.outer_layer import OuterLayer
from hushcast_protocol.base import observations
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.base.link.hop import NextHop
from hushcast_protocol.base.link.hop_link import LinkState
from hushcast_protocol.base.link.hop_values import HopActions, HopRules, ReadBack, SendItems, Settle
from hushcast_protocol.base.wire import Wire
from hushcast_protocol.central.frames import (
    AttachAnswer,
    DeliveriesAcknowledged,
    Detach,
    ServerAnswer,
    ServerDelivery,
)
from hushcast_protocol.central.introduction import PseudonymSecret
from hushcast_protocol.central.pseudonym_register import hop_of, waits_for
from hushcast_protocol.central.request_proofs import check_acknowledgement, followed
from hushcast_protocol.central.rerouting import WrappedMessage, mark
from hushcast_protocol.content.hops import Hop
from hushcast_protocol.content.messages import Message
from hushcast_runtime.context import Context
from hushcast_runtime.storage.spool import READ_AT_ONCE, Spool, SpooledMessage
from hushcast_runtime.transports.channel_writer import Writer

WINDOW = 512 * 1024  # bytes sent in one attachment before the next waits: the proxy holds them in memory
LOOK_EVERY = 5.0  # seconds between looks at who acknowledges too late


class ProxyLink:
    """The open link of a proxy, as deliveries see it: where to write, and who is attached through it."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.attachments: dict[int, DeliveryAttachment] = {}
        """By the number of the request that began each."""


class DeliveryAttachment(LinkState[SpooledMessage]):
    """A pseudonym's attachment: a link whose other end is behind a proxy."""

    __slots__ = ("_chain", "_chains", "link", "number", "pseudonym", "secret", "unwritten")

    def __init__(
        self,
        link: ProxyLink,
        number: int,
        pseudonym: bytes,
        secret: PseudonymSecret,
        salt: bytes,
        now: float,
    ) -> None:
        super().__init__(now)
        self.link = link
        self.number = number
        self.pseudonym = pseudonym
        self.secret = secret
        self.unwritten: deque[Message] = deque()
        """What is in the window, and whose turn to be written has not come."""
        self._chain = salt
        self._chains: deque[bytes] = deque()  # of what was written and not acknowledged

    def wrote(self, wrapped: WrappedMessage, now: float) -> None:
        """Note that the next item was written, as this."""
        self._chain = followed(self._chain, wrapped)
        self._chains.append(self._chain)
        if len(self._chains) == 1:
            self.touch(now)

    def check(self, acknowledged: DeliveriesAcknowledged) -> bool:
        """Tell whether an acknowledgement says anything new; raise a `PeerError` where it cannot be.

        What it is of is taken as acknowledged from then on.
        """
        new = acknowledged.number - self._acknowledged
        if new <= 0:
            return False
        if new > len(self._chains):
            raise DecodeError("a delivery is acknowledged that was not sent")
        chain = self._chains[new - 1]
        check_acknowledgement(self.secret, chain, acknowledged.number, acknowledged.proof)
        for _ in range(new):
            self._chains.popleft()
        return True

    def is_late(self, now: float) -> bool:
        """Tell whether what was written was not acknowledged in time."""
        return bool(self._chains) and self.deadline <= now


Machine = NextHop[DeliveryAttachment, SpooledMessage]


class Deliveries:
    """The deliveries of one server."""

    def __init__(self, spool: Spool, sealing: OuterLayer, context: Context) -> None:
        self._spool = spool
        self._sealing = sealing
        self._now = context.env.elapsed
        self._randomness = context.env.randomness
        self._counters = context.counters
        self._tracer = context.tracer
        self._spawn = context.spawn
        self._rules = HopRules(spool.holds, context.env.randomness, False, False, WINDOW)
        self._machines: dict[bytes, Machine] = {}
        self._may_take: Callable[[bytes], None] = lambda _: None
        self._ended: Callable[[bytes], None] = lambda _: None
        self._forgotten: Callable[[bytes], None] = lambda _: None

    def follow(
        self,
        may_take: Callable[[bytes], None],
        ended: Callable[[bytes], None],
        forgotten: Callable[[bytes], None],
    ) -> None:
        """Have others hear of a pseudonym that may take more, and that is not attached any more.

        And of one for which nothing is to wait.
        """
        self._may_take, self._ended, self._forgotten = may_take, ended, forgotten

    def is_attached(self, pseudonym: bytes) -> bool:
        """Tell whether a pseudonym is attached."""
        return pseudonym in self._machines

    def __len__(self) -> int:
        """Return how many pseudonyms are attached."""
        return len(self._machines)

    def attach(self, link: ProxyLink, number: int, pseudonym: bytes, secret: PseudonymSecret) -> None:
        """Answer a request to attach, and send what waits; an earlier attachment of the pseudonym ends."""
        if link.writer.scope.cancel_called:
            return  # the link has ended, and with it all that was attached
        if (former := self._machines.get(pseudonym)) is not None:
            self._end(former.links[-1], tell=True)
        now, salt = self._now(), self._randomness(16)
        attachment = DeliveryAttachment(link, number, pseudonym, secret, salt, now)
        link.attachments[number] = attachment
        link.writer.post(ServerAnswer(number, AttachAnswer(salt)))
        machine = self._machines[pseudonym] = Machine(self._rules)
        self._do(machine, pseudonym, machine.link_up(attachment, False, now))
        self._do(machine, pseudonym, machine.resume(now))
        self._may_take(pseudonym)

    def enqueue(self, placed: Iterable[tuple[Hop, SpooledMessage]]) -> None:
        """Send spooled messages to those that are attached; for the others they wait."""
        now = self._now()
        for hop, item in placed:
            if (machine := self._machines.get(waits_for(hop))) is not None:
                self._do(machine, waits_for(hop), machine.enqueue((item,), now))

    def acknowledged(self, link: ProxyLink, frame: DeliveriesAcknowledged) -> None:
        """Take a user's acknowledgement; one that does not hold ends the attachment."""
        attachment = link.attachments.get(frame.attachment)
        if attachment is None:
            return  # it ended meanwhile
        now = self._now()
        try:
            is_new = attachment.check(frame)
        except (AuthenticationError, DecodeError) as error:
            is_proof = isinstance(error, AuthenticationError)
            self._counters.add("refused_proof" if is_proof else "refused_form")
            self._end(attachment, tell=True)
            return
        if is_new:
            machine = self._machines[attachment.pseudonym]
            actions = machine.acknowledged(attachment, frame.number, (), now)
            attachment.touch(now)
            self._do(machine, attachment.pseudonym, actions)
            self._may_take(attachment.pseudonym)

    def detach(self, link: ProxyLink, number: int) -> None:
        """End an attachment: the user is gone."""
        if (attachment := link.attachments.get(number)) is not None:
            self._end(attachment, tell=False)

    def left(self, link: ProxyLink) -> None:
        """End all attachments of a link that is gone."""
        for attachment in list(link.attachments.values()):
            self._end(attachment, tell=False)

    def let_go(self, pseudonym: bytes) -> None:
        """End the attachment of a pseudonym that takes too long; it may attach again."""
        if (machine := self._machines.get(pseudonym)) is not None:
            self._counters.add("attachments_lapsed")
            self._end(machine.links[-1], tell=True)

    def forget(self, pseudonym: bytes) -> None:
        """Let nothing wait for a pseudonym any more."""
        self._forgotten(pseudonym)
        if (machine := self._machines.get(pseudonym)) is not None:
            self._end(machine.links[-1], tell=True)
        if hop_of(pseudonym) in self._spool.shares:
            self._spawn(self._clear, pseudonym)

    async def run(self) -> None:
        """End attachments whose acknowledgements are late, until cancelled."""
        while True:
            await trio.sleep(LOOK_EVERY)
            now = self._now()
            for machine in list(self._machines.values()):
                attachment = machine.links[-1]
                if attachment.is_late(now):
                    self.let_go(attachment.pseudonym)

    async def _clear(self, pseudonym: bytes) -> None:
        while items := await self._spool.waiting(hop_of(pseudonym)):
            self._spool.done(items)

    def _end(self, attachment: DeliveryAttachment, tell: bool) -> None:
        del attachment.link.attachments[attachment.number]
        # What it sent and nobody acknowledged waits in the spool, from where the next attachment has it.
        del self._machines[attachment.pseudonym]
        attachment.unwritten.clear()
        self._ended(attachment.pseudonym)
        if tell:
            attachment.link.writer.post(Detach(attachment.number))

    def _do(
        self, machine: Machine, pseudonym: bytes, actions: HopActions[DeliveryAttachment, SpooledMessage]
    ) -> None:
        for action in actions:
            if isinstance(action, SendItems):
                action.link.unwritten += [item.message for item in action.items]
                for _ in action.items:
                    action.link.link.writer.post_later(partial(self._delivery, action.link))
            elif isinstance(action, Settle):
                self._counters.add("deliveries_acknowledged", len(action.items))
                self._spool.done(action.items)
            else:
                what = "a pseudonym has one attachment, and no other way"
                assert isinstance(action, ReadBack), what
                self._spawn(self._read_back, machine, pseudonym, action.after)

    async def _read_back(self, machine: Machine, pseudonym: bytes, after: SpooledMessage | None) -> None:
        items = await self._spool.waiting(hop_of(pseudonym), after, READ_AT_ONCE)
        if self._machines.get(pseudonym) is machine:
            self._do(machine, pseudonym, machine.read_back(items, self._now()))

    def _delivery(self, attachment: DeliveryAttachment) -> Wire | None:
        """Make the frame of an attachment's next delivery, whose turn has come; none where it has ended."""
        if not attachment.unwritten:
            return None
        message = attachment.unwritten.popleft()
        wrapped = self._sealing.delivery(message)
        attachment.wrote(wrapped, self._now())
        self._counters.add("deliveries_sent")
        if self._tracer.is_on:
            name, _ = self._sealing.seen_inside(wrapped)
            size = len(wrapped.payload)
            self._tracer.observe(observations.Dispatched(name, attachment.pseudonym, mark(wrapped), size))
        return ServerDelivery(attachment.number, wrapped)
